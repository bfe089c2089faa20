"""The list of purges: newest first, by key, filtered by state and moderator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.errors import BadInput
from chatstore.models import Channel, ChatUser
from moderation.domain.selection import Selection, say_selection
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import Purge
from moderation.operations.access import Actor, visible_channels, visible_purges

PURGES_A_PAGE = 30

STATE_FILTERS: dict[str, tuple[str, frozenset[PurgeState]]] = {
    "running": ("Running", ACTIVE_PURGES),
    "ready": ("To be confirmed", frozenset({PurgeState.SCANNING, PurgeState.READY})),
    "done": ("Done", frozenset({PurgeState.DONE, PurgeState.DONE_WITH_FAILURES})),
    "undone": ("Brought back", frozenset({PurgeState.UNDONE, PurgeState.PARTLY_UNDONE})),
    "cancelled": ("Cancelled", frozenset({PurgeState.CANCELLED, PurgeState.EXPIRED})),
}
"""What a person filters by, with its words."""


@dataclass(frozen=True, slots=True)
class ListedPurge:
    """A purge with its selection as a sentence's object, names filled in."""

    purge: Purge
    channel_id: int
    sentence: str

    @property
    def title(self) -> str:
        """How many of what: "1,204 messages: everything by Victor in #general"."""
        count = self.purge.manifest
        if not count or self.purge.selection["messages"]:
            return self.sentence[:1].upper() + self.sentence[1:]
        return f"{count:,} message{'' if count == 1 else 's'}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class PurgePage:
    """A page of the list. older: exclusive cursor of the next page, or None."""

    purges: Sequence[ListedPurge]
    older: int | None


def list_purges(
    user: Actor,
    *,
    state: str = "",
    moderator: str = "",
    channel_id: int | None = None,
    before: int | None = None,
    limit: int = PURGES_A_PAGE,
) -> PurgePage:
    """The purges a user may see. Raises `BadInput` for an unknown state."""
    purges = visible_purges(user).defer("digest").order_by("-id")
    if state:
        if state not in STATE_FILTERS:
            raise BadInput(f"There is no state {state!r} to filter by.")
        purges = purges.filter(state__in=STATE_FILTERS[state][1])
    if moderator:
        if "\x00" in moderator:
            raise BadInput("A name cannot hold a NUL character.")
        purges = purges.filter(moderator__username=moderator)
    if channel_id is not None:
        purges = purges.filter(selection__channel=str(channel_id))
    if before is not None:
        purges = purges.filter(pk__lt=before)
    found = list(purges[: limit + 1])
    shown = found[:limit]
    return PurgePage(describe_purges(user, shown), older=shown[-1].pk if len(found) > limit else None)


def describe_purges(user: Actor, purges: Sequence[Purge]) -> list[ListedPurge]:
    """Fills the names in; two queries for any number of purges."""
    selections = [Selection.from_json(purge.selection) for purge in purges]
    channels: dict[int, Channel] = visible_channels(user).in_bulk({s.channel_id for s in selections})
    authors = ChatUser.objects.in_bulk({author for s in selections for author in s.author_ids})
    names = {author_id: str(author) for author_id, author in authors.items()}
    listed = []
    for purge, selection in zip(purges, selections, strict=True):
        channel = channels.get(selection.channel_id)
        words = str(channel) if channel else f"channel {selection.channel_id}"
        listed.append(ListedPurge(purge, selection.channel_id, say_selection(selection, channel=words, authors=names)))
    return listed
