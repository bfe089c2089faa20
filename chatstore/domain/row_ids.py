"""Ids of rows in Postgres that carry their time and their guild's shard, after Instagram's scheme.

`(Unix ms - 1293840000000) << 23 | shard << 10 | sequence % 1024`: 41 bits of milliseconds since 2011, 13 bits of
logical shard, 10 bits of sequence. Postgres makes them (`next_id(shard)`). As signed numbers they ascend until 2045.
See https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

EPOCH_MS = 1_293_840_000_000
"""2011-01-01T00:00Z in Unix milliseconds."""

SHARDS = 2_000
"""Logical shards. A guild keeps its shard for good, so this number never changes."""

MAX_SHARD = (1 << 13) - 1
SEQUENCES = 1 << 10
_TIME_SHIFT = 23
_SHARD_SHIFT = 10
_UNIX = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class RowId:
    """What a row's id carries. ms: Unix milliseconds."""

    ms: int
    shard: int
    sequence: int

    @property
    def time(self) -> dt.datetime:
        """UTC datetime, to the millisecond."""
        return _UNIX + dt.timedelta(milliseconds=self.ms)


def shard_of(guild_id: int | None) -> int:
    """Return the logical shard of a guild; 0 for rows of several guilds, or of none."""
    return (guild_id or 0) % SHARDS


def encode_row_id(ms: int, *, shard: int, sequence: int) -> int:
    """Return the id of a Unix millisecond, a shard (13 bits) and a sequence number, of which 10 bits are kept."""
    if not 0 <= shard <= MAX_SHARD:
        raise ValueError(f"shard {shard} is outside 0..{MAX_SHARD}")
    return (ms - EPOCH_MS) << _TIME_SHIFT | shard << _SHARD_SHIFT | sequence % SEQUENCES


def decode_row_id(row_id: int) -> RowId:
    """Return what an id carries. Any 64-bit number can be decoded, whether it is a row's id or not."""
    return RowId(
        ms=(row_id >> _TIME_SHIFT) + EPOCH_MS,
        shard=row_id >> _SHARD_SHIFT & MAX_SHARD,
        sequence=row_id % SEQUENCES,
    )
