"""Places where chat users have posted, in the channels that a viewer may see.

The index of authors is the same for all viewers, so its entries are read until enough of them are in such channels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Reading:
    """How far an index was read. found: its entries in the channels."""

    index: Iterator[tuple[int, int]]
    looked_at: int = 0
    is_at_end: bool = False
    found: list[tuple[int, int]] = field(default_factory=list)

    def read_next(self) -> list[tuple[int, int]]:
        wanted = min(ENTRIES_AT_ONCE, MAX_ENTRIES - self.looked_at)
        some = list(islice(self.index, wanted))
        self.looked_at += len(some)
        self.is_at_end = len(some) < wanted or self.looked_at == MAX_ENTRIES
        return some


def first_places(
    index: Iterator[tuple[int, int]], channels: ChannelQuerySet, *, limit: int, chosen: Collection[int] = ()
) -> AuthorPlaces:
    """Return the first entries of the index in some channels. chosen: ids of those among them; empty for all."""
    return first_places_of_each([index], channels, limit=limit, chosen=chosen)[0]


def first_places_of_each(
    indexes: Iterable[Iterator[tuple[int, int]]],
    channels: ChannelQuerySet,
    *,
    limit: int,
    chosen: Collection[int] = (),
) -> list[AuthorPlaces]:
    """Return the same for several users. The channels of all of them are looked up by one statement for each part."""
    readings = [_Reading(index) for index in indexes]
    known: dict[int, Channel | None] = {}
    left = readings
    while left:
        parts = [reading.read_next() for reading in left]
        wanted = [[entry for entry in some if not chosen or entry[1] in chosen] for some in parts]
        if new := {channel_id for some in wanted for _, channel_id in some} - known.keys():
            known |= dict.fromkeys(new) | channels.in_bulk(new)
        for reading, some in zip(left, wanted, strict=True):
            reading.found += [entry for entry in some if known[entry[1]] is not None]
        left = [reading for reading in left if len(reading.found) < limit and not reading.is_at_end]
    return [_cut(reading, known, limit) for reading in readings]


def _cut(reading: _Reading, known: Mapping[int, Channel | None], limit: int) -> AuthorPlaces:
    is_whole = len(reading.found) < limit and reading.looked_at < MAX_ENTRIES
    shown = reading.found[:limit]
    ids = {channel_id for _, channel_id in shown}
    return AuthorPlaces(shown, {i: channel for i, channel in known.items() if channel and i in ids}, is_whole)
