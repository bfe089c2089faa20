"""Narrowing of a selection: all of it but one author, only one author, or all of it but one channel.

What is selected afterwards was selected before. Selections of individual messages are narrowed by excluding messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from moderation.domain.filters import All, Author, Filter, Not, columns_of, compile_filter, join_minutes
from moderation.domain.selection import Selection


def without_author(selection: Selection, author_id: int) -> Selection:
    """Keep the messages of an author."""
    parts = _parts_of(selection)
    for place, part in enumerate(parts):
        match part:
            case Author(ids) if author_id in ids and len(ids) > 1:
                parts[place] = Author(tuple(i for i in ids if i != author_id))
                return _with_parts(selection, parts)
            case Not(Author(ids)):
                parts[place] = Not(Author(tuple(dict.fromkeys((*ids, author_id)))))
                return _with_parts(selection, parts)
    return _with_parts(selection, [*parts, Not(Author((author_id,)))])


def only_author(selection: Selection, author_id: int) -> Selection:
    """Keep the messages of everyone but an author."""
    others = [part for part in _parts_of(selection) if not (isinstance(part, Author) and author_id in part.ids)]
    return _with_parts(selection, [Author((author_id,)), *others])


def without_channel(selection: Selection, channel_id: int) -> Selection:
    """Keep the messages of a channel. Raises `BadInput` for the only channel that is named."""
    if selection.channel_ids == (channel_id,):
        # Without any, every channel would be searched.
        raise BadInput(_("This is the preview’s only channel. Discard the preview instead."))
    if selection.channel_ids:
        return replace(selection, channel_ids=tuple(i for i in selection.channel_ids if i != channel_id))
    return replace(selection, except_channel_ids=tuple(dict.fromkeys((*selection.except_channel_ids, channel_id))))


def rules_out(selection: Selection, channel_id: int, message_id: int, author_id: int) -> bool:
    """Return whether a message cannot belong to a selection, by its channel, id and author alone.

    Conditions on the times since joining and since the first message are ignored.
    """
    if channel_id in selection.except_channel_ids or channel_id not in (selection.channel_ids or (channel_id,)):
        return True
    tests = (
        compile_filter(part, ("message_id", "author_id"), bots=frozenset(), first_seen=None)
        for part in _parts_of(selection)
        if not columns_of(part) and not join_minutes(part)
    )
    return not all(test((message_id, author_id)) for test in tests)


def _parts_of(selection: Selection) -> list[Filter]:
    """Return the conditions that all must match; none for a whole channel."""
    if selection.where is None:
        return []
    return list(selection.where.parts) if isinstance(selection.where, All) else [selection.where]


def _with_parts(selection: Selection, parts: Sequence[Filter]) -> Selection:
    where = parts[0] if len(parts) == 1 else All(tuple(parts))
    if selection.everything:
        # A whole channel includes its pinned messages.
        return replace(selection, where=where, everything=False, with_pinned=True)
    return replace(selection, where=where)
