"""Narrowing of a preview by one click: all of it but one author, only one author, or all of it but one channel.

A channel's buckets are taken out of the manifest by two statements, whatever their number. An author may be in any
bucket, so a new preview with the narrower selection is scanned, and replaces the old one. Individually selected
messages, of which there are few, are excluded one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from chatstore.store import scans
from moderation.domain.narrowing import only_author, without_author, without_channel
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import DELETING
from moderation.models import Purge
from moderation.operations.access.audit import record_action
from moderation.operations.preview.exclusions import (
    EXCLUDED,
    check_preview,
    exclude_messages,
    excluded_messages,
    open_preview,
    store_changed,
)
from moderation.operations.preview.manifest_summary import renew_summary
from moderation.operations.purging.lifecycle import discard_preview, draft_purge
from moderation.operations.steps.claiming import brief_transaction, lock_purge

Narrow = Callable[..., Purge]
"""One of the three below."""


def keep_author(purge_id: int, author_id: int, *, moderator: User, manifest_hash: bytes) -> Purge:
    """Return a preview without the messages of an author; if it is a new one, it is still to be scanned.

    manifest_hash: of the preview that was shown. Raises `BadInput` if it has changed since.
    """
    purge, selection = _open_shown(purge_id, moderator, manifest_hash)
    if selection.message_ids:
        ids = _ids_by_author(purge, lambda author: author == author_id)
        return exclude_messages(purge.pk, ids, moderator=moderator, manifest_hash=manifest_hash)
    return _replace(purge, without_author(selection, author_id), moderator, manifest_hash)


def keep_other_authors(purge_id: int, author_id: int, *, moderator: User, manifest_hash: bytes) -> Purge:
    """Return a preview of an author's messages only; see `keep_author`."""
    purge, selection = _open_shown(purge_id, moderator, manifest_hash)
    if selection.message_ids:
        ids = _ids_by_author(purge, lambda author: author != author_id)
        return exclude_messages(purge.pk, ids, moderator=moderator, manifest_hash=manifest_hash)
    return _replace(purge, only_author(selection, author_id), moderator, manifest_hash)


def keep_channel(purge_id: int, channel_id: int, *, moderator: User, manifest_hash: bytes) -> Purge:
    """Return the preview without a channel; see `keep_author`."""
    purge, selection = _open_shown(purge_id, moderator, manifest_hash)
    narrower = without_channel(selection, channel_id)
    here = purge.manifest_buckets.filter(channel_id=channel_id)
    if not here.exists():
        raise BadInput(_("This channel is not in the preview. Reload it and try again."))
    if purge.held_at_scan:
        # Held messages are counted over all channels.
        return _replace(purge, narrower, moderator, manifest_hash)
    excluded = {message_id for channel, message_id in excluded_messages(purge) if channel == channel_id}
    narrower = replace(narrower, except_ids=tuple(i for i in narrower.except_ids if i not in excluded))
    with brief_transaction():
        check_preview(lock_purge(purge.pk), manifest_hash)
        purge.steps.filter(channel_id=channel_id).delete()
        here.delete()
        details = {"channel": str(channel_id)}
        store_changed(purge, narrower, moderator=moderator, action="purge_channel_excluded", details=details)
    renew_summary(purge)
    return purge


def _open_shown(purge_id: int, moderator: User, manifest_hash: bytes) -> tuple[Purge, Selection]:
    purge, selection = open_preview(purge_id, moderator)
    check_preview(purge, manifest_hash)
    return purge, selection


def _ids_by_author(purge: Purge, is_wanted: Callable[[int | None], bool]) -> list[int]:
    """Return the individually selected messages whose author is wanted. A message that is gone has none."""
    found: list[int] = []
    for channel_id, bucket in purge.manifest_buckets.values_list("channel_id", "bucket"):
        steps = purge.steps.filter(channel_id=channel_id, bucket=bucket, kind__in=DELETING)
        frozen = chain.from_iterable(map(unpack_ids, steps.values_list("ids", flat=True)))
        authors = dict(chain.from_iterable(scans.read_all_ids(channel_id, bucket)))
        found += [message_id for message_id in frozen if is_wanted(authors.get(message_id))]
    return found


def _replace(purge: Purge, selection: Selection, moderator: User, manifest_hash: bytes) -> Purge:
    """Draft a preview with another selection; discard the old one if it is the moderator's own.

    Excluded messages stay excluded.
    """
    excluded: dict[str, list[str]] = defaultdict(list)
    for channel_id, message_id in excluded_messages(purge):
        excluded[str(channel_id)].append(str(message_id))
    with brief_transaction():
        check_preview(lock_purge(purge.pk), manifest_hash)
        replaced = purge.pk if purge.moderator_id == moderator.pk else None
        drafted = draft_purge(moderator=moderator, selection=selection, replaces=replaced)
        if excluded:
            record_action(EXCLUDED, actor=moderator, purge=drafted, details={"messages": excluded})
        if replaced is not None:
            discard_preview(replaced, moderator=moderator, replaced_by=drafted.pk)
    return drafted
