"""The ledger: which buckets of a channel contain messages, and between which ids.

No row means never written. A row whose `live` is unset or all null means that the bucket may contain live messages.
Rows are never deleted. `live` is set only from one quorum read of the whole bucket, stamped ten seconds before that
read began, so that a clear, stamped with the current time, always wins.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from chatstore.domain.buckets import BucketKey
from chatstore.domain.live import Live, stamp_of_live
from chatstore.store import cassandra
from chatstore.store.lru_set import LRUSet

LedgerRow = tuple[int, Live]

NEWEST_ROWS = 8
"""Ledger rows that a page reads beside the newest bucket; most pages need no more."""

CHANNELS_PER_READ = 32
"""Channels whose newest rows one statement reads, as `locating` reads them."""

CACHE_SECONDS = 1.0
"""Lifetime of cached ledger rows: a job that cleared `live` is reported done a second after its last clear."""

MAX_CACHED_ROWS = 512
"""Maximum rows cached per channel: fourteen years of a channel with a single bucket that contains messages."""

NEWEST_BUCKET = 2**31 - 1

_INSERT_ROW = "INSERT INTO bucket_ledger (channel_id, bucket) VALUES (?, ?)"
_SET_LIVE = "INSERT INTO bucket_ledger (channel_id, bucket, live) VALUES (?, ?, ?) USING TIMESTAMP ?"
_SELECT_ALL = "SELECT bucket, live FROM bucket_ledger WHERE channel_id = ?"
_SELECT_NEWEST = "SELECT bucket FROM bucket_ledger WHERE channel_id = ? LIMIT 1"
_SELECT_NEWEST_ROWS = (
    f"SELECT channel_id, bucket, live FROM bucket_ledger WHERE channel_id IN ? PER PARTITION LIMIT {NEWEST_ROWS}"
)
_SELECT_ONE = "SELECT live FROM bucket_ledger WHERE channel_id = ? AND bucket = ?"
_SELECT_DOWN = (
    "SELECT bucket, live FROM bucket_ledger WHERE channel_id = ? AND bucket <= ? ORDER BY bucket DESC LIMIT ?"
)
_SELECT_UP = "SELECT bucket, live FROM bucket_ledger WHERE channel_id = ? AND bucket >= ? ORDER BY bucket ASC LIMIT ?"

_written = LRUSet(100_000)


def ensure_row(channel_id: int, bucket: int) -> None:
    """Write the bucket's row before its first message; once per process."""
    if (channel_id, bucket) in _written:
        return
    cassandra.execute(_INSERT_ROW, (channel_id, bucket))
    _written.add((channel_id, bucket))
    expire_cache(channel_id)


def clear_live(channel_id: int, bucket: int) -> None:
    """Clear the bounds, since anything may be live in the bucket: a value of nulls, stamped now.

    A value instead of a deletion: a tombstone could expire before the late `set` that it must win against.
    """
    cassandra.execute(_SET_LIVE, (channel_id, bucket, (None, None, None), time.time_ns() // 1000))
    _written.add((channel_id, bucket))
    expire_cache(channel_id)


def set_live(channel_id: int, bucket: int, live: Live, *, read_began_us: int) -> None:
    """Set the bounds found by one quorum read of the whole bucket.

    Only for a job that has locked the channel. `read_began_us`: Postgres's clock (µs) before the read began; the value
    is stamped `CLOCK_SKEW_SECONDS` earlier and loses to any clear since then.
    """
    stamp = stamp_of_live(read_began_us=read_began_us, skew_seconds=settings.CLOCK_SKEW_SECONDS)
    cassandra.execute(_SET_LIVE, (channel_id, bucket, live.as_tuple(), stamp))
    expire_cache(channel_id)


def read_ledger(channel_id: int, *, newest: int | None = None) -> list[LedgerRow]:
    """Return all rows of a channel, or the first `newest` of them, newest bucket first. Never cached."""
    if newest is None:
        return to_ledger_rows(cassandra.execute(_SELECT_ALL, (channel_id,)))
    return submit_rows(channel_id, start=NEWEST_BUCKET, descending=True, limit=newest).rows()


def read_ledgers(channel_ids: Sequence[int]) -> Iterator[tuple[int, list[LedgerRow]]]:
    """Yield each channel with all its rows, newest bucket first, in the order of the channels. Never cached."""
    answers = cassandra.execute_window((_SELECT_ALL, (channel_id,)) for channel_id in channel_ids)
    for channel_id, rows in zip(channel_ids, answers, strict=True):
        yield channel_id, to_ledger_rows(rows)


def read_ledgers_for_page(channel_ids: Sequence[int]) -> dict[int, list[LedgerRow]]:
    """Return what `read_ledgers` yields. Messages that are read for the same page need not read it again."""
    requested_at = time.monotonic()
    found = dict(read_ledgers(channel_ids))
    for channel_id, rows in found.items():
        if len(rows) <= MAX_CACHED_ROWS:
            cache_newest(channel_id, NewestRows(rows, requested_at, is_whole=True))
    return found


def read_newest_rows(channel_ids: Sequence[int]) -> dict[int, list[LedgerRow]]:
    """Return the newest rows of each channel, newest bucket first, with few statements, and cache them for pages."""
    requested_at = time.monotonic()
    parts = (channel_ids[start : start + CHANNELS_PER_READ] for start in range(0, len(channel_ids), CHANNELS_PER_READ))
    found: dict[int, list[LedgerRow]] = {channel_id: [] for channel_id in channel_ids}
    for rows in cassandra.execute_window((_SELECT_NEWEST_ROWS, (list(part),)) for part in parts):
        for channel_id, bucket, live in rows:
            found[channel_id].append((bucket, Live.from_tuple(live)))
    for channel_id, newest in found.items():
        cache_newest(channel_id, NewestRows(newest, requested_at, is_whole=len(newest) < NEWEST_ROWS))
    return found


def read_newest_buckets(channel_ids: Sequence[int]) -> dict[int, int]:
    """Return the newest bucket ever written, by channel; channels without any are left out."""
    answers = cassandra.execute_window([(_SELECT_NEWEST, (channel_id,)) for channel_id in channel_ids])
    return {channel_id: bucket for channel_id, rows in zip(channel_ids, answers, strict=True) for (bucket,) in rows}


def read_live(channel_id: int, bucket: int) -> Live | None:
    """Return the ledger's bounds of one bucket; None without a row."""
    rows = submit_rows(channel_id, start=bucket, descending=True, limit=1).rows()
    return next((live for found, live in rows if found == bucket), None)


def read_live_in(keys: Sequence[BucketKey]) -> dict[BucketKey, Live]:
    """Return the ledger's bounds of some buckets, without those that have no row. Never cached."""
    answers = cassandra.execute_window((_SELECT_ONE, key) for key in keys)
    return {key: Live.from_tuple(live) for key, rows in zip(keys, answers, strict=True) for (live,) in rows}


def to_ledger_rows(rows: list[cassandra.Row]) -> list[LedgerRow]:
    """Convert the driver's rows."""
    return [(bucket, Live.from_tuple(live)) for bucket, live in rows]


class PendingRows:
    """A ledger read in flight."""

    def __init__(self, pending: cassandra.Pending) -> None:
        self._pending = pending

    def rows(self) -> list[LedgerRow]:
        """Wait for the rows, in the requested order."""
        return to_ledger_rows(self._pending.rows())


def submit_rows(channel_id: int, *, start: int, descending: bool, limit: int) -> PendingRows:
    """Request up to `limit` rows from the bucket `start` (inclusive) on, downwards or upwards."""
    cql = _SELECT_DOWN if descending else _SELECT_UP
    return PendingRows(cassandra.submit(cql, (channel_id, start, limit)))


# --- Rows cached for pages for a second -------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewestRows:
    """A channel's newest ledger rows as last read by this process.

    requested_at: `time.monotonic()` before the read. is_whole: there are no further rows. was_short: a page had to read
    beyond the first `NEWEST_ROWS`, so the next one reads more of them at once.
    """

    rows: list[LedgerRow]
    requested_at: float
    is_whole: bool
    was_short: bool = False


class _NewestCache:
    """Least-recently-used cache of channels' newest ledger rows."""

    LIMIT = 2_000

    def __init__(self) -> None:
        self._entries: OrderedDict[int, NewestRows] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, channel_id: int, newest: NewestRows) -> None:
        with self._lock:
            seen = self._entries.get(channel_id)
            was_short = newest.was_short or (seen is not None and seen.was_short)
            self._entries[channel_id] = replace(newest, was_short=was_short)
            self._entries.move_to_end(channel_id)
            while len(self._entries) > self.LIMIT:
                self._entries.popitem(last=False)

    def extend(self, channel_id: int, extended: NewestRows) -> None:
        """Store more rows of the same read; no effect if the channel was read again or expired meanwhile."""
        with self._lock:
            entry = self._entries.get(channel_id)
            if entry is not None and entry.requested_at == extended.requested_at:
                self._entries[channel_id] = extended

    def get(self, channel_id: int) -> NewestRows | None:
        return self._entries.get(channel_id)

    def expire(self, channel_id: int) -> None:
        with self._lock:
            entry = self._entries.get(channel_id)
            if entry is not None:
                self._entries[channel_id] = replace(entry, requested_at=float("-inf"))


_newest_cache = _NewestCache()


def expire_cache(channel_id: int) -> None:
    """Have the next page of this process read the ledger again."""
    _newest_cache.expire(channel_id)


def cache_newest(channel_id: int, newest: NewestRows) -> None:
    """Cache a channel's newest rows for pages."""
    _newest_cache.put(channel_id, newest)


def extend_cached(channel_id: int, extended: NewestRows) -> None:
    """Cache the rows beyond the newest ones that a page had to read."""
    if len(extended.rows) <= MAX_CACHED_ROWS:
        _newest_cache.extend(channel_id, extended)


def cached_newest(channel_id: int) -> NewestRows | None:
    """Return the channel's newest rows if they were read within the last second."""
    newest = _newest_cache.get(channel_id)
    return newest if newest is not None and time.monotonic() - newest.requested_at <= CACHE_SECONDS else None


def last_known_newest(channel_id: int) -> NewestRows | None:
    """Return the channel's newest rows as last seen, however old: only a guess of what to read beside the ledger."""
    return _newest_cache.get(channel_id)
