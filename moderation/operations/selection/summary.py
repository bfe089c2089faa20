"""Purges with a summary of their selection, names resolved: at most five queries for any number of purges."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from django.utils.text import capfirst

from chatstore.models import Channel, ChatUser, Guild
from chatstore.operations.rights import VIEW_CHANNELS, guilds_for
from moderation.domain.selection import Selection
from moderation.domain.state_labels import label_of_state
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access.visibility import Actor, visible_channels
from moderation.operations.selection.scope import scope_of
from moderation.operations.selection.shown_states import awaiting_approval, shown_states
from moderation.presentation.wording import summarize_selection

FindChannels = Callable[[Iterable[int]], Mapping[int, Channel]]
FindUsers = Callable[[Iterable[int]], Mapping[int, ChatUser]]
"""Functions that return those of some objects that are there, and that a viewer may see, by ID.

Users with their namesakes.
"""


class Summarize(Protocol):
    """Summarizes a selection; with a count, of that many messages."""

    def __call__(self, selection: Selection, count: int = 0) -> str: ...


@dataclass(frozen=True, slots=True)
class ListedProgress:
    """Messages of a running purge or undo whose outcome is known, of all that it includes."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ListedPurge:
    """Purge with a summary of its selection. channel_id: if it names exactly one channel.

    title: the summary with the count, if known: "1,204 messages by Victor in #general, except pinned".
    shown_state: a state that `label_of_state` names. undo_until: end of the undo period, if the list includes it.
    still_deleted: messages that the purge deleted and that were not restored, if the list includes it and they are not
    all that the title counts. failed, held: messages that were not deleted, where they were counted.
    progress: of a purge that runs or is being undone, if the list includes it. awaits_viewer: it waits for approval,
    and the viewer may approve it. approvable_until: end of the request for approval, if the list includes it.
    """

    purge: Purge
    channel_id: int | None
    summary: str
    title: str
    shown_state: str
    undo_until: dt.datetime | None = None
    still_deleted: int | None = None
    failed: int = 0
    held: int = 0
    progress: ListedProgress | None = None
    awaits_viewer: bool = False
    approvable_until: dt.datetime | None = None

    @property
    def state_label(self) -> str:
        """The state in words, as the purge's own page has it."""
        return label_of_state(self.shown_state, failed=self.failed, held=self.held, awaits_viewer=self.awaits_viewer)

    @property
    def message_count(self) -> int:
        """Messages that the state is about: those that the undo restores, or else all that the purge includes."""
        if self.purge.state == PurgeState.UNDOING and self.progress is not None:
            return self.progress.total
        return self.purge.manifest


def describe_purges(
    user: Actor | None,
    purges: Sequence[Purge],
    *,
    find_channels: FindChannels | None = None,
    find_users: FindUsers | None = None,
    requested: Mapping[int, bool] | None = None,
) -> list[ListedPurge]:
    """Return the purges with their summaries, with the names that the user may see; all names without a user.

    find_channels, find_users, requested (IDs of purges that wait for approval, with whether the user may approve them):
    for callers that have read some of them already.
    """
    selections = [Selection.from_json(purge.selection) for purge in purges]
    summarize = _read_names(user, selections, find_channels=find_channels, find_users=find_users)
    awaiting = awaiting_approval(user, purges, known=requested or {})
    states = shown_states(purges, awaiting=awaiting)
    return [
        ListedPurge(
            purge,
            selection.only_channel_id,
            summary=summarize(selection),
            # What a running scan has found so far is no count of what the purge includes.
            title=capfirst(summarize(selection, 0 if purge.state == PurgeState.SCANNING else purge.manifest or 0)),
            shown_state=states[purge.pk],
            awaits_viewer=awaiting.get(purge.pk, False),
        )
        for purge, selection in zip(purges, selections, strict=True)
    ]


def summarize_selections(
    user: Actor | None,
    selections: Sequence[Selection],
    *,
    find_channels: FindChannels | None = None,
    find_users: FindUsers | None = None,
) -> list[str]:
    """Summarize selections, with the names that the user may see; all names without a user."""
    summarize = _read_names(user, selections, find_channels=find_channels, find_users=find_users)
    return [summarize(selection) for selection in selections]


def _read_names(
    user: Actor | None,
    selections: Sequence[Selection],
    *,
    find_channels: FindChannels | None,
    find_users: FindUsers | None,
) -> Summarize:
    """Read the names that are in some selections, and return a function that summarizes one of those."""
    channels = Channel.objects.all() if user is None else visible_channels(user)
    find_channels = find_channels or channels.select_related("guild").in_bulk
    known = find_channels({i for selection in selections for i in _channel_ids_of(selection)})
    wanted = {s.guild_id for s in selections if s.guild_id is not None}
    shown = Guild.objects.all() if user is None else guilds_for(user, VIEW_CHANNELS)
    guilds = shown.in_bulk(wanted.union(*(s.within.guilds for s in selections if s.within is not None)))
    find_users = find_users or ChatUser.objects.with_namesakes().in_bulk
    authors = find_users({author for selection in selections for author in selection.named_authors})
    names = {author_id: author.distinct_name for author_id, author in authors.items()}

    def summarize(selection: Selection, count: int = 0) -> str:
        return summarize_selection(selection, scope=scope_of(selection, known, guilds), authors=names, count=count)

    return summarize


def _channel_ids_of(selection: Selection) -> list[int]:
    within = selection.within.channels if selection.within is not None else ()
    return [*selection.channel_ids, *selection.except_channel_ids, *within]


def selection_summary(purge: Purge) -> str:
    """Summarize a purge's selection: "all messages by Victor in #general (Gophers) since 1 May 2024"."""
    return describe_purges(None, [purge])[0].summary
