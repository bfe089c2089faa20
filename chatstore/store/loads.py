"""What a job over many small buckets asks and writes of all of them at once.

One statement after the other costs a round trip each; a channel of 400 buckets with a dozen
messages each would spend its import on them.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.live import Live, stamp_of_live
from chatstore.domain.withdrawals import Withdrawals
from chatstore.store import cassandra, ledger, messages, withdrawn

FEW_IDS = 100
"""Up to here a bucket's ids are asked one by one (in one statement), above as an interval."""

WHOLE_BUCKETS = 4
"""Reads of whole buckets beside each other: the servers' work, which nothing speeds up."""

_SET_LIVE = "INSERT INTO bucket_ledger (channel_id, bucket, live) VALUES (?, ?, ?) USING TIMESTAMP ?"
_WITHDRAWN = "SELECT message_id, author_id, claimed_by FROM withdrawn WHERE channel_id = ? AND bucket = ?"
_EDITED = (
    "SELECT message_id, author_id, edited_at FROM messages WHERE channel_id = ? AND bucket = ? AND message_id IN ?"
)
_FIGURE = (
    "INSERT INTO bucket_figures (channel_id, bucket, figure, value, source, measured_at) "
    "VALUES (?, ?, 'live_rows', ?, ?, ?) USING TIMESTAMP ?"
)
_ENSURE = "INSERT INTO bucket_ledger (channel_id, bucket) VALUES (?, ?)"
_BOUNDS = (
    "SELECT min(message_id), max(message_id), count(*), count(author_id) FROM messages "
    "WHERE channel_id = ? AND bucket = ?"
)
_COUNT = "SELECT count(author_id) FROM messages WHERE channel_id = ? AND bucket = ?"


def ensure_rows_in(channel_id: int, buckets: Iterable[int]) -> None:
    """Write the buckets' ledger rows, before the first messages that go there."""
    for _ in cassandra.execute_window((_ENSURE, (channel_id, bucket)) for bucket in buckets):
        pass
    ledger.forget_cache(channel_id)


def set_live_in(channel_id: int, lives: Mapping[int, Live], *, read_began_us: int) -> None:
    """Say what lives in each bucket, as `ledger.set_live` does for one."""
    stamp = stamp_of_live(read_began_us=read_began_us, skew_seconds=settings.CLOCK_SKEW_SECONDS)
    jobs = ((_SET_LIVE, (channel_id, bucket, live.as_tuple(), stamp)) for bucket, live in lives.items())
    for _ in cassandra.execute_window(jobs):
        pass
    ledger.forget_cache(channel_id)


def clear_live_in(channel_id: int, buckets: Iterable[int]) -> None:
    """Say of each bucket that anything may live there, as `ledger.clear_live` does."""
    stamp = time.time_ns() // 1000
    jobs = ((_SET_LIVE, (channel_id, bucket, (None, None, None), stamp)) for bucket in buckets)
    for _ in cassandra.execute_window(jobs):
        pass
    ledger.forget_cache(channel_id)


def withdrawn_in(channel_id: int, buckets: Sequence[int]) -> dict[int, Withdrawals]:
    """What people withdrew themselves, by bucket; buckets with nothing of it are left out."""
    answers = cassandra.execute_window((_WITHDRAWN, (channel_id, bucket)) for bucket in buckets)
    return {bucket: withdrawn.collect(rows) for bucket, rows in zip(buckets, answers, strict=True) if rows}


def read_edited(channel_id: int, ids: Mapping[int, Sequence[int]]) -> dict[int, dt.datetime | None]:
    """The edited time (None: never) of each of the named messages that lives.

    `ids`: by bucket, ascending. A row without an author does not live.
    """
    few = {bucket: wanted for bucket, wanted in ids.items() if 0 < len(wanted) <= FEW_IDS}
    jobs = ((_EDITED, (channel_id, bucket, list(wanted))) for bucket, wanted in few.items())
    edited: dict[int, dt.datetime | None] = {}
    for rows in cassandra.execute_window(jobs):
        edited.update(_pick_edited(rows, None))
    for bucket in ids.keys() - few.keys():
        wanted = set(ids[bucket])
        if not wanted:
            continue
        pages = messages.iterate_rows(
            channel_id,
            bucket,
            first=ids[bucket][0],
            last=ids[bucket][-1],
            columns=("message_id", "author_id", "edited_at"),
            fetch_size=cassandra.FETCH_SIZE,
        )
        for rows in pages:
            edited.update(_pick_edited(rows, wanted))
    return edited


def _pick_edited(rows: Iterable[cassandra.Row], wanted: set[int] | None) -> Iterable[tuple[int, dt.datetime | None]]:
    for message_id, author_id, edited_at in rows:
        if author_id is not None and (wanted is None or message_id in wanted):
            yield message_id, edited_at.replace(tzinfo=dt.UTC) if edited_at else None


def read_bounds_in(channel_id: int, buckets: Sequence[int]) -> dict[int, tuple[int | None, int | None, int, int]]:
    """Lowest id, highest id, rows and rows with an author of each whole bucket, at quorum.

    Put together on the servers. Raises `TooManyTombstones` when one of them can't be read so.
    """
    jobs = ((_BOUNDS, (channel_id, bucket)) for bucket in buckets)
    rows = cassandra.execute_window(jobs, window=WHOLE_BUCKETS)
    return {bucket: tuple(found[0]) for bucket, found in zip(buckets, rows, strict=True)}


def count_live_in(channel_id: int, buckets: Sequence[int]) -> dict[int, int]:
    """How many messages live in each bucket, counted at quorum on the servers.

    A bucket that can't be counted now is left out: unknown is never 0.
    """
    try:
        jobs = ((_COUNT, (channel_id, bucket)) for bucket in buckets)
        rows = cassandra.execute_window(jobs, window=WHOLE_BUCKETS)
        return {bucket: int(counted[0][0]) for bucket, counted in zip(buckets, rows, strict=True)}
    except (StoreUnavailable, TooManyTombstones):
        return _count_one_by_one(channel_id, buckets)


def _count_one_by_one(channel_id: int, buckets: Sequence[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for bucket in buckets:
        try:
            counts[bucket] = int(cassandra.execute(_COUNT, (channel_id, bucket))[0][0])
        except (StoreUnavailable, TooManyTombstones):
            continue
    return counts


def note_live_rows_in(channel_id: int, counts: Mapping[int, int], *, source: str, measured_at: dt.datetime) -> None:
    """Note how many messages live in each bucket, as `figures.note_figures` does for one."""
    stamp = int(measured_at.timestamp() * 1_000_000)
    jobs = ((_FIGURE, (channel_id, bucket, count, source, measured_at, stamp)) for bucket, count in counts.items())
    for _ in cassandra.execute_window(jobs):
        pass
