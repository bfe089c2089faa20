"""Reads of whole buckets by jobs, traced so that they also measure the tombstones that later reads scan."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.conf import settings

from chatstore.domain.buckets import BucketKey, bucket_of, join_keys
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, VALUE_COLUMNS, Message
from chatstore.domain.texts import gettext_lazy
from chatstore.store import cassandra, traces
from chatstore.store.messages import COLUMNS, ROW_FETCH, SCAN_FETCH, iterate_rows, to_message

IDS_PER_READ = 100
"""Ids per IN clause of one partition."""

BUCKETS_PER_READ = 10
"""Small buckets per statement. Reading each with its own costs the servers and the driver twice as much."""

READS_AHEAD = 8

WHOLE_READS_AHEAD = 16
"""Buckets whose first pages are in flight."""

SMALL_FETCH = 5_000
"""Rows of a page while many buckets are read, so that their first pages fit into memory."""

_IDS = ("message_id", "author_id")

_LIGHT = frozenset({"message_id", "author_id", "pinned", "webhook_id", "reference"})
"""Columns of a few bytes, of which a page can contain many."""

_STAMPS = tuple(f"WRITETIME({column})" for column in VALUE_COLUMNS)
_IN = "FROM messages WHERE channel_id = ? AND bucket = ? AND message_id IN ?"
_SELECT_ROWS = f"SELECT {', '.join(COLUMNS)} {_IN}"
_SELECT_AUTHORS = f"SELECT message_id, author_id {_IN}"
_SELECT_STAMPS = f"SELECT message_id, {', '.join(_STAMPS)} {_IN}"
_IN_BUCKETS = "FROM messages WHERE channel_id IN ? AND bucket IN ?"
_IDS_BY_BUCKET = f"SELECT channel_id, bucket, {', '.join(_IDS)}"
_ROWS_BY_BUCKET = f"SELECT channel_id, bucket, {', '.join((*COLUMNS, *_STAMPS))}"
_SELECT_IDS_IN_BUCKETS = f"{_IDS_BY_BUCKET} {_IN_BUCKETS}"
_SELECT_COLUMNS = "SELECT column_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name = 'messages'"


class BucketPages:
    """The pages of a bucket, newest first, at quorum; after the last one, its tombstones.

    The first page is requested at once. known_tombstones: the tombstones, if known; otherwise the read is traced, which
    makes it 50 % more expensive for the servers.
    """

    def __init__(
        self,
        channel_id: int,
        bucket: int,
        *,
        columns: Sequence[str] = COLUMNS,
        fetch_size: int = ROW_FETCH,
        known_tombstones: int | None = None,
    ) -> None:
        self.known_tombstones = known_tombstones
        self._key = channel_id, bucket
        self._traces: list[uuid.UUID] = []
        self._pages = iterate_rows(
            channel_id,
            bucket,
            columns=columns,
            fetch_size=fetch_size,
            traces=self._traces if known_tombstones is None else None,
        )

    def __iter__(self) -> Iterator[list[Any]]:
        return self._pages

    def count_tombstones(self) -> int:
        """Return the tombstones that the read has scanned so far; if its trace is lost, those of the whole bucket.

        Raises `StoreUnavailable` if the trace of another read is lost too.
        """
        return count_tombstones([self])[0]

    def _count_again(self) -> int:
        again = BucketPages(*self._key, columns=_IDS, fetch_size=SCAN_FETCH)
        deque(again, maxlen=0)
        (count,) = traces.count_tombstones([again._traces])
        if count is None:
            raise StoreUnavailable(gettext_lazy("A replica has not reported how many tombstones it scanned."))
        return count


def count_tombstones(reads: Sequence[BucketPages]) -> list[int]:
    """Return `BucketPages.count_tombstones` of each read, with all of their traces in flight at once."""
    counted = iter(traces.count_tombstones([read._traces for read in reads if read.known_tombstones is None]))
    counts = [next(counted) if read.known_tombstones is None else read.known_tombstones for read in reads]
    # Once more: the nodes may have dropped events only because of many reads at once.
    return [read._count_again() if count is None else count for read, count in zip(reads, counts, strict=True)]


def read_whole_rows(channel_id: int, bucket: int, *, known_tombstones: int | None = None) -> BucketPages:
    """Read every row of a bucket, all columns in the order of `messages.COLUMNS`."""
    return BucketPages(channel_id, bucket, known_tombstones=known_tombstones)


def read_parts(
    channel_id: int, bucket: int, columns: Sequence[str], *, known_tombstones: int | None = None
) -> BucketPages:
    """Read some columns of every row of a bucket; the first one must be the message id."""
    fetch = page_rows(columns)
    return BucketPages(channel_id, bucket, columns=columns, fetch_size=fetch, known_tombstones=known_tombstones)


def page_rows(columns: Sequence[str]) -> int:
    """Return the number of rows in a page of `read_parts`."""
    return SCAN_FETCH if _LIGHT.issuperset(columns) else ROW_FETCH


def submit_authors(channel_id: int, bucket: int, ids: Sequence[int]) -> cassandra.Pending:
    """Request (message id, author id or None) of the rows that exist, newest first. ids: at most `IDS_PER_READ`."""
    return cassandra.submit(_SELECT_AUTHORS, (channel_id, bucket, list(ids)))


def read_all_ids(
    channel_id: int, bucket: int, *, known_tombstones: int | None = None, fetch_size: int = SCAN_FETCH
) -> BucketPages:
    """Read (message id, author id or None) of every row of a bucket."""
    return BucketPages(channel_id, bucket, columns=_IDS, fetch_size=fetch_size, known_tombstones=known_tombstones)


def read_ids_in(
    keys: Collection[BucketKey], *, window: int = WHOLE_READS_AHEAD
) -> Iterator[tuple[BucketKey, list[Any]]]:
    """Yield (message id, author id or None) of every row of some buckets, newest first, some at a time.

    One bucket after the other, in any order; nothing for empty ones. Tombstones are not counted.
    """
    jobs = ((_SELECT_IDS_IN_BUCKETS, joined) for joined in join_keys(dict.fromkeys(keys, 1), limit=BUCKETS_PER_READ))
    for pages in cassandra.iterate_each(jobs, window=window, fetch_size=SMALL_FETCH):
        for page in pages:
            yield from _by_bucket(page)


def submit_ids_in(channel_ids: Sequence[int], buckets: Sequence[int], *, fetch_size: int) -> cassandra.Pending:
    """Request (channel id, bucket, message id, author id or None) of every row of the buckets that `join_keys` joined.

    One bucket after the other, in any order.
    """
    return cassandra.submit(_SELECT_IDS_IN_BUCKETS, (list(channel_ids), list(buckets)), fetch_size=fetch_size)


def read_live_ids_in(wanted: Mapping[BucketKey, Collection[int]]) -> dict[BucketKey, set[int]]:
    """Return those of the ids that are live, by bucket. Of whole buckets, nothing else is kept in memory."""
    live: dict[BucketKey, set[int]] = {key: set() for key in wanted}
    few = {key: list(ids) for key, ids in wanted.items() if len(ids) <= IDS_PER_READ}
    for key, rows in _read_in_buckets(_IDS_BY_BUCKET, few):
        live[key].update(message_id for message_id, author_id in rows if author_id is not None)
    for key in wanted.keys() - few.keys():
        for page in iterate_rows(*key, columns=_IDS, fetch_size=SCAN_FETCH):
            live[key].update(i for i, author_id in page if author_id is not None and i in wanted[key])
    return live


def read_rows_with_writetime(channel_id: int, bucket: int, ids: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows that exist: all columns, followed by the newest WRITETIME (µs); 0 for a row of only its key."""
    for _, rows in read_rows_with_writetime_in({(channel_id, bucket): ids}, window=READS_AHEAD):
        yield rows


def read_rows_with_writetime_in(
    wanted: Mapping[BucketKey, Sequence[int]], *, window: int = cassandra.WINDOW
) -> Iterator[tuple[BucketKey, list[tuple[Any, ...]]]]:
    """Yield the same for the ids of several buckets, each time with the bucket, one bucket after the other."""
    width = len(COLUMNS)
    for key, rows in _read_in_buckets(_ROWS_BY_BUCKET, wanted, window=window):
        yield (
            key,
            [(*row[:width], max((stamp for stamp in row[width:] if stamp is not None), default=0)) for row in rows],
        )


def read_messages_in(posts: Iterable[tuple[int, int]]) -> list[Message]:
    """Return those of some messages, as (channel ID, message ID), that are there, with their reads joined."""
    wanted: dict[BucketKey, list[int]] = {}
    for channel_id, message_id in posts:
        wanted.setdefault((channel_id, bucket_of(message_id)), []).append(message_id)
    return [
        to_message(channel_id, row)
        for (channel_id, _), rows in read_rows_with_writetime_in(wanted)
        for row in rows
        if row[AUTHOR_ID] is not None
    ]


def _read_in_buckets(
    select: str, wanted: Mapping[BucketKey, Sequence[int]], *, window: int = cassandra.WINDOW
) -> Iterator[tuple[BucketKey, list[Any]]]:
    """Yield the rows of the ids that exist, one bucket after the other. select: the channel and the bucket first."""
    few = {key: frozenset(ids) for key, ids in wanted.items() if len(ids) <= IDS_PER_READ}
    for found in cassandra.execute_window(_joined_jobs(select, wanted), window=window):
        for key, rows in _by_bucket(found):
            # A statement asks each of its buckets for the ids of all of them, and two channels can have the same ids.
            yield key, [row for row in rows if row[MESSAGE_ID] in few[key]] if key in few else rows


def _joined_jobs(select: str, wanted: Mapping[BucketKey, Sequence[int]]) -> Iterator[tuple[str, cassandra.Params]]:
    """Yield reads of at most `IDS_PER_READ` ids. Few ids of several buckets are read together."""
    one_bucket, several = f"{select} {_IN}", f"{select} {_IN_BUCKETS} AND message_id IN ?"
    for key, ids in wanted.items():
        if len(ids) > IDS_PER_READ:
            yield from _in_jobs(one_bucket, *key, ids)
    least = IDS_PER_READ // BUCKETS_PER_READ
    few = {key: max(len(ids), least) for key, ids in wanted.items() if 0 < len(ids) <= IDS_PER_READ}
    for channel_ids, buckets in join_keys(few, limit=IDS_PER_READ):
        ids = [i for channel_id in channel_ids for bucket in buckets for i in wanted[channel_id, bucket]]
        if len(channel_ids) == len(buckets) == 1:
            # The driver sends it to a replica.
            yield one_bucket, (channel_ids[0], buckets[0], ids)
        else:
            yield several, (channel_ids, buckets, ids)


def _by_bucket(rows: list[Any]) -> Iterator[tuple[BucketKey, list[Any]]]:
    """Yield rows that begin with their channel and bucket, without these, by bucket."""
    for key, found in groupby(rows, key=itemgetter(0, 1)):
        yield key, [row[2:] for row in found]


def read_rows(
    channel_id: int, bucket: int, ids: Sequence[int], *, dense: bool = False
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows that exist, all columns, some at a time.

    ids: ascending. dense: they are many of the rows between them, so one range read is faster than point reads.
    """
    if dense:
        yield from _read_between(COLUMNS, channel_id, bucket, ids)
    else:
        yield from _read_in(_SELECT_ROWS, channel_id, bucket, ids)


def read_oldest_writetimes(
    channel_id: int, bucket: int, ids: Sequence[int], *, dense: bool = False
) -> Iterator[list[tuple[int, int]]]:
    """Yield (message id, oldest WRITETIME among its cells, µs) of the rows that exist; parameters as in `read_rows`.

    With dense ids, the author's cell represents all others where it is set: each row is written in one mutation, and
    thirteen more WRITETIMEs make the read take three times as long.
    """
    if not dense:
        yield from map(_oldest, _read_in(_SELECT_STAMPS, channel_id, bucket, ids))
        return
    authorless: list[int] = []
    columns = ("message_id", "WRITETIME(author_id)")
    for rows in _read_between(columns, channel_id, bucket, ids, fetch_size=SCAN_FETCH):
        authorless.extend(message_id for message_id, stamp in rows if stamp is None)
        yield [(message_id, stamp) for message_id, stamp in rows if stamp is not None]
    yield from map(_oldest, _read_in(_SELECT_STAMPS, channel_id, bucket, authorless))


def _oldest(rows: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
    return [(message_id, min(stamp for stamp in stamps if stamp is not None)) for message_id, *stamps in rows]


def _read_between(
    columns: Sequence[str], channel_id: int, bucket: int, ids: Sequence[int], *, fetch_size: int = ROW_FETCH
) -> Iterator[list[tuple[Any, ...]]]:
    wanted = frozenset(ids)
    for page in iterate_rows(channel_id, bucket, first=ids[0], last=ids[-1], columns=columns, fetch_size=fetch_size):
        yield [row for row in page if row[MESSAGE_ID] in wanted]


def _read_in(cql: str, channel_id: int, bucket: int, ids: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
    return cassandra.execute_window(_in_jobs(cql, channel_id, bucket, ids), window=READS_AHEAD)


def _in_jobs(cql: str, channel_id: int, bucket: int, ids: Sequence[int]) -> Iterator[tuple[str, cassandra.Params]]:
    return (
        (cql, (channel_id, bucket, list(ids[start : start + IDS_PER_READ])))
        for start in range(0, len(ids), IDS_PER_READ)
    )


def read_columns() -> frozenset[str]:
    """Return the columns that the table `messages` has at present."""
    rows = cassandra.execute(_SELECT_COLUMNS, (settings.CASSANDRA["keyspace"],))
    return frozenset(name for (name,) in rows)
