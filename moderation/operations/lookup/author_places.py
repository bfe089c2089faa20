"""Places where chat users have posted, in the channels that a viewer may see.

The index of authors is the same for all viewers, so its entries are read until enough of them are in such channels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from chatstore.models import Channel
from chatstore.models.chat import ChannelQuerySet

ENTRIES_AT_ONCE = 500
"""Entries whose channels are looked up by one statement."""

MAX_ENTRIES = 10_000
"""Entries that are read at most: a user may have posted in thousands of channels that the viewer may not see."""


@dataclass(frozen=True, slots=True)
class AuthorPlaces:
    """Entries (bucket, channel id) in the order of the index, and their channels. is_whole: there are no others."""

    entries: Sequence[tuple[int, int]]
    channels: Mapping[int, Channel]
    is_whole: bool


def first_places(
    index: Iterator[tuple[int, int]], channels: ChannelQuerySet, *, limit: int, chosen: Collection[int] = ()
) -> AuthorPlaces:
    """Return the first entries of the index in some channels. chosen: ids of those among them; empty for all."""
    entries: list[tuple[int, int]] = []
    known: dict[int, Channel | None] = {}
    looked_at = 0
    while some := list(islice(index, min(ENTRIES_AT_ONCE, MAX_ENTRIES - looked_at))):
        looked_at += len(some)
        wanted = [entry for entry in some if not chosen or entry[1] in chosen]
        if new := {channel_id for _, channel_id in wanted} - known.keys():
            known |= dict.fromkeys(new) | channels.in_bulk(new)
        entries += [entry for entry in wanted if known[entry[1]] is not None]
        if len(entries) >= limit:
            break
    is_whole = len(entries) < limit and looked_at < MAX_ENTRIES
    shown = entries[:limit]
    ids = {channel_id for _, channel_id in shown}
    return AuthorPlaces(shown, {i: channel for i, channel in known.items() if channel and i in ids}, is_whole)
