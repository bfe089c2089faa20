"""Purges with a summary of their selection, names resolved: three queries for any number of purges."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from django.utils.text import capfirst
from django.utils.translation import ngettext

from chatstore.models import Channel, ChatUser, Guild
from chatstore.operations.rights import VIEW_CHANNELS, guilds_for
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.access.visibility import Actor, visible_channels
from moderation.operations.selection.scope import scope_of
from moderation.presentation.formats import format_number
from moderation.presentation.wording import summarize_selection

FindChannels = Callable[[Iterable[int]], Mapping[int, Channel]]
FindUsers = Callable[[Iterable[int]], Mapping[int, ChatUser]]
"""Functions that return those of some objects that are there, and that a viewer may see, by ID."""


@dataclass(frozen=True, slots=True)
class ListedPurge:
    """Purge with a summary of its selection. channel_id: if it names exactly one channel.

    undo_until: end of the undo period, if the list includes it.
    """

    purge: Purge
    channel_id: int | None
    summary: str
    undo_until: dt.datetime | None = None

    @property
    def title(self) -> str:
        """Count and summary: "1,204 messages: all messages by Victor in #general, except pinned"."""
        count = self.purge.manifest
        if not count or self.purge.selection["messages"]:
            return capfirst(self.summary)
        text = ngettext("%(count)s message: %(selection)s", "%(count)s messages: %(selection)s", count)
        return text % {"count": format_number(count), "selection": self.summary}


def describe_purges(
    user: Actor | None,
    purges: Sequence[Purge],
    *,
    find_channels: FindChannels | None = None,
    find_users: FindUsers | None = None,
) -> list[ListedPurge]:
    """Return the purges with their summaries, with the names that the user may see; all names without a user.

    find_channels, find_users: for callers that have read some of them already.
    """
    selections = [Selection.from_json(purge.selection) for purge in purges]
    summaries = summarize_selections(user, selections, find_channels=find_channels, find_users=find_users)
    return [
        ListedPurge(purge, selection.only_channel_id, summary)
        for purge, selection, summary in zip(purges, selections, summaries, strict=True)
    ]


def describe_lists(user: Actor, lists: Sequence[Sequence[Purge]]) -> list[list[ListedPurge]]:
    """Return several lists of purges with their summaries, in as many queries as one list."""
    listed = iter(describe_purges(user, [*chain.from_iterable(lists)]))
    return [list(islice(listed, len(purges))) for purges in lists]


def summarize_selections(
    user: Actor | None,
    selections: Sequence[Selection],
    *,
    find_channels: FindChannels | None = None,
    find_users: FindUsers | None = None,
) -> list[str]:
    """Summarize selections, with the names that the user may see; all names without a user."""
    channels = Channel.objects.all() if user is None else visible_channels(user)
    find_channels = find_channels or channels.select_related("guild").in_bulk
    known = find_channels({i for selection in selections for i in _channel_ids_of(selection)})
    wanted = {s.guild_id for s in selections if s.guild_id is not None}
    shown = Guild.objects.all() if user is None else guilds_for(user, VIEW_CHANNELS)
    guilds = shown.in_bulk(wanted.union(*(s.within.guilds for s in selections if s.within is not None)))
    find_users = find_users or ChatUser.objects.in_bulk
    authors = find_users({author for selection in selections for author in selection.named_authors})
    names = {author_id: str(author) for author_id, author in authors.items()}
    return [
        summarize_selection(selection, scope=scope_of(selection, known, guilds), authors=names)
        for selection in selections
    ]


def _channel_ids_of(selection: Selection) -> list[int]:
    within = selection.within.channels if selection.within is not None else ()
    return [*selection.channel_ids, *selection.except_channel_ids, *within]


def selection_summary(purge: Purge) -> str:
    """Summarize a purge's selection: "all messages by Victor in #general (Gophers) since 1 May 2024"."""
    return describe_purges(None, [purge])[0].summary
