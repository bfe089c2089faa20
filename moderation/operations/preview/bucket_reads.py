"""Reads of the buckets in a selection's scope: many in flight, then matched, and planned together.

What is needed per bucket is fetched per group: the holds in force, the known tombstones, the traces of reads that had
to count them. Memory is bounded by the rows that are in flight and by those that wait to be planned.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from operator import itemgetter

from django.conf import settings

from chatstore.domain.buckets import BucketKey, bucket_of, is_sealed
from chatstore.domain.messages import MESSAGE_ID
from chatstore.domain.snowflakes import first_id_at
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.ledger.refresh import SOURCE
from chatstore.operations.ledger.summaries import mark_due
from chatstore.operations.ledger.tombstones import known_tombstones
from chatstore.store import figures, scans
from moderation.domain.filters import Row
from moderation.domain.holds import HeldRows
from moderation.domain.planner import MAX_ROW_DELETES, RECENT_MS, BucketSplit, plan_bucket
from moderation.domain.selection import Selection
from moderation.operations.holds import hold_coverage_in
from moderation.operations.preview.matching import BucketTests, Matcher, Pick
from moderation.operations.selection.scope import BucketInScope

READS_AHEAD = 16
"""Buckets whose first pages are in flight."""

PAGES_AHEAD = 2
"""Full pages in flight: in dense buckets one is requested while another is matched."""

UNCOUNTED_ROWS = 5_000
"""Rows expected in a bucket that the ledger has not counted."""

PLAN_ROWS = 200_000
PLAN_BUCKETS = 50
PLAN_SECONDS = 0.5
"""Buckets are planned and stored after this many rows or buckets, or after this long: the first counts appear at once,
and transactions are short, although workers wait in them for each other: at most 0.23 s in a preview of 20,000 buckets.
"""

RENEW_SECONDS = 10.0
"""Interval of lease renewals while one bucket is read, or what is ahead is listed: both may take a minute."""


@dataclass(frozen=True, slots=True)
class ScannedBucket:
    """Scan result of one bucket, with its plan.

    scanned: number of rows read. survivors: number of messages that are kept; None if the bucket was not read as a
    whole, because all matching ids were known.
    """

    channel_id: int
    bucket: int
    scanned: int
    matched: list[int]
    survivors: int | None
    authors: Counter[int]
    split: BucketSplit
    held_at_scan: int = 0


class _Renewal:
    """Renews a lease at most every `RENEW_SECONDS`, however often it is called; first at once."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self._renew, self._renewed_at = renew, -RENEW_SECONDS

    def __call__(self) -> None:
        """Renew the lease if it is time."""
        if time.monotonic() - self._renewed_at >= RENEW_SECONDS:
            self._renew()
            self._renewed_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class _Reading:
    """A bucket whose first page is in flight. whole: the read of all its rows; None if only known ids are read.

    expected: its rows by the ledger, if counted. cost: rows that its first page may contain.
    """

    key: BucketKey
    pages: Iterator[Sequence[Row]]
    whole: scans.BucketPages | None
    expected: int | None
    cost: int


@dataclass(frozen=True, slots=True)
class _MatchedBucket:
    """A bucket that was read and matched, and is not planned yet. survivors: empty if only known ids were read."""

    reading: _Reading
    scanned: int
    matched: list[int]
    survivors: list[int]
    authors: Counter[int]
    held: int


def scan_buckets(
    selection: Selection, group: Sequence[BucketInScope], *, matcher: Matcher, renew: Callable[[], None]
) -> Iterator[tuple[int, list[ScannedBucket]]]:
    """Yield (number of buckets read so far, results of those that have rows), some buckets at a time, in their order.

    group: buckets whose holds, tombstones and times of joining are looked up together. renew: called at the beginning,
    and then every `RENEW_SECONDS`. Raises `StoreUnavailable`.
    """
    renewal = _Renewal(renew)
    renewal()
    began_at = postgres_now()
    keys = [(channel_id, bucket) for channel_id, bucket, _ in group]
    known, tests = known_tombstones(keys), matcher.for_buckets(keys, between=renewal)
    coverage = hold_coverage_in({channel_id for channel_id, _, _ in group}, authors=selection.author_ids)
    matched: list[_MatchedBucket] = []
    rows, planned_at = 0, time.monotonic()
    readings = _read_ahead(selection, group, known)
    for number, reading in enumerate(_prepare(readings, tests) if tests.has_reads else readings, start=1):
        found = _match(reading, partial(tests.pick, reading.key[0]), HeldRows(coverage[reading.key[0]]), renewal)
        if found.scanned:
            matched.append(found)
            rows += found.scanned
        is_full = rows >= PLAN_ROWS or len(matched) >= PLAN_BUCKETS
        if number < len(group) and (is_full or time.monotonic() - planned_at >= PLAN_SECONDS):
            yield number, _plan(matched, known, began_at)
            matched, rows, planned_at = [], 0, time.monotonic()
    yield len(group), _plan(matched, known, began_at)


def _read_ahead(
    selection: Selection, group: Iterable[BucketInScope], known: Mapping[BucketKey, int]
) -> Iterator[_Reading]:
    in_flight: deque[_Reading] = deque()
    page = scans.page_rows(selection.columns)
    selected: dict[int, list[int]] = defaultdict(list)
    for message_id in sorted(selection.message_ids):
        selected[bucket_of(message_id)].append(message_id)
    for in_scope in group:
        ids = selected[in_scope.bucket]
        tombstones = known.get((in_scope.channel_id, in_scope.bucket))
        expected = UNCOUNTED_ROWS if in_scope.expected is None else in_scope.expected
        cost = min(expected, page)
        while in_flight and (
            len(in_flight) >= READS_AHEAD or cost + sum(reading.cost for reading in in_flight) > PAGES_AHEAD * page
        ):
            yield in_flight.popleft()
        in_flight.append(_begin_read(in_scope, selection.columns, ids, tombstones, cost))
    yield from in_flight


def _prepare(readings: Iterator[_Reading], tests: BucketTests) -> Iterator[_Reading]:
    """Yield readings, with what the tests of their first pages have to read read for several small ones together."""
    while True:
        opened: list[tuple[_Reading, Sequence[Row]]] = []
        for reading in islice(readings, READS_AHEAD):
            opened.append((reading, next(reading.pages, ())))
            if sum(len(rows) for _, rows in opened) >= UNCOUNTED_ROWS:
                break
        if not opened:
            return
        if len(opened) > 1:
            tests.prepare((reading.key[0], rows) for reading, rows in opened)
        for reading, rows in opened:
            yield replace(reading, pages=chain([rows] if rows else [], reading.pages))


def _begin_read(
    in_scope: BucketInScope, columns: Sequence[str], selected: Sequence[int], tombstones: int | None, cost: int
) -> _Reading:
    """Request a bucket: only the selected ids if they will certainly be deleted by row, so that the rest plays no part.

    selected: ids of the bucket; empty if the selection is a filter or a whole channel.
    """
    key = in_scope.channel_id, in_scope.bucket
    if selected and tombstones is not None:
        room = settings.PURGE_TOMBSTONE_BUDGET - tombstones
        if len(selected) <= min(MAX_ROW_DELETES, room, scans.IDS_PER_READ):
            pages = scans.submit_authors(*key, selected).pages()
            return _Reading(key, pages, None, in_scope.expected, len(selected))
    whole = scans.read_parts(*key, columns, known_tombstones=tombstones)
    return _Reading(key, iter(whole), whole, in_scope.expected, cost)


def _match(reading: _Reading, pick: Pick, held_rows: HeldRows, renew: Callable[[], None]) -> _MatchedBucket:
    matched: list[int] = []
    survivors: list[int] = []
    authors: Counter[int] = Counter()
    scanned = 0
    for page in reading.pages:
        scanned += len(page)
        unheld = held_rows.without_held(pick(page))
        ids = [row[MESSAGE_ID] for row in unheld]
        matched.extend(ids)
        authors.update(map(itemgetter(1), unheld))
        if len(unheld) < len(page):
            chosen = frozenset(ids)
            survivors.extend(row[MESSAGE_ID] for row in page if row[MESSAGE_ID] not in chosen)
        renew()
    matched.reverse()
    survivors.reverse()
    return _MatchedBucket(reading, scanned, matched, survivors, authors, len(held_rows.ids))


def _plan(
    matched: Sequence[_MatchedBucket], known: Mapping[BucketKey, int], began_at: dt.datetime
) -> list[ScannedBucket]:
    """Plan buckets, and store the tombstones that had to be counted, for the next scan. began_at: before any read."""
    reads = {found.reading.key: found.reading.whole for found in matched if found.reading.whole is not None}
    tombstones = {**known, **dict(zip(reads, scans.count_tombstones(list(reads.values())), strict=True))}
    counted = {key: {"tombstones": tombstones[key]} for key, read in reads.items() if read.known_tombstones is None}
    figures.note_figures_in(counted, source=SOURCE, measured_at=began_at)
    mark_due({channel_id for channel_id, _ in counted})
    now_ms = postgres_now_us() // 1_000
    return [_plan_bucket(found, tombstones[found.reading.key], now_ms) for found in matched]


def _plan_bucket(found: _MatchedBucket, tombstones: int, now_ms: int) -> ScannedBucket:
    channel_id, bucket = found.reading.key
    return ScannedBucket(
        channel_id=channel_id,
        bucket=bucket,
        scanned=found.scanned,
        matched=found.matched,
        survivors=len(found.survivors) if found.reading.whole is not None else _count_rest(found),
        authors=found.authors,
        split=split_bucket(bucket, found.matched, found.survivors, existing_tombstones=tombstones, now_ms=now_ms),
        held_at_scan=found.held,
    )


def _count_rest(found: _MatchedBucket) -> int | None:
    """Return the number of rows that were not matched, if the ledger has counted all of them.

    Its count is exact: nothing was deleted since the tombstones were counted, and a late post clears it.
    """
    expected = found.reading.expected
    return None if expected is None else max(0, expected - len(found.matched))


def split_bucket(
    bucket: int, matched: list[int], survivors: list[int], *, existing_tombstones: int, now_ms: int
) -> BucketSplit:
    """Split the matched ids of a bucket into steps and plan them for its current contents.

    matched, survivors: ids, ascending. existing_tombstones: tombstones that a read of the bucket already scans.
    now_ms: Postgres's clock.
    """
    return plan_bucket(
        matched,
        survivors,
        recent_from=first_id_at(now_ms - RECENT_MS),
        existing_tombstones=existing_tombstones,
        sealed=is_sealed(bucket, now_ms=now_ms),
        budget=settings.PURGE_TOMBSTONE_BUDGET,
        later_from=settings.PURGE_LATER_TOMBSTONES,
    )
