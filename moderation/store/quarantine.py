"""Quarantine: copies of the messages that a purge deletes, written and read back before any delete.

An attempt is one read of a bucket, identified by the stamp (µs) issued for it. Chunks of two attempts never mix. A
crash leaves chunks of an attempt that no step refers to; they expire.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, WRITETIME
from chatstore.store import cassandra, scans
from moderation.domain.chunks import ROWS_PER_CHUNK, PackedRows, Row, decode_chunk, encode_chunks, with_writetime
from moderation.domain.holds import Spared

INSERT = """INSERT INTO quarantine
    (purge_id, channel_id, bucket, attempt, chunk, message_count, first_id, last_id, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
SELECT_BODIES = """SELECT chunk, body FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? AND attempt = ?"""
SELECT_ENDS = """SELECT chunk, first_id, last_id FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? AND attempt = ?"""
SELECT_BODY = """SELECT body FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? AND attempt = ? AND chunk = ?"""
SELECT_ATTEMPTS = """SELECT attempt FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? GROUP BY attempt"""

ERASE = "DELETE FROM quarantine USING TIMESTAMP ? WHERE purge_id = ? AND channel_id = ? AND bucket = ?"
SELECT_ANY = "SELECT attempt FROM quarantine WHERE purge_id = ? AND channel_id = ? AND bucket = ? LIMIT 1"

WINDOW = 8
"""Chunks in flight; each may contain up to 1 MiB of JSON."""

CHUNKS_PER_PAGE = 32


@dataclass(frozen=True, slots=True)
class Place:
    """Key of an attempt's chunks."""

    purge_id: int
    channel_id: int
    bucket: int
    attempt: int

    def key(self) -> tuple[int, int, int, int]:
        """Return the values that every statement binds first."""
        return self.purge_id, self.channel_id, self.bucket, self.attempt


@dataclass(slots=True)
class Reading:
    """Result of reading a whole bucket. Ids are in the read's order, descending; 8 bytes an id, not 40 as in a list.

    found: ids of the manifest that are present with their author. survivors: every present id that is not in the
    manifest.
    """

    found: array[int] = field(default_factory=lambda: array("q"))
    survivors: array[int] = field(default_factory=lambda: array("q"))
    tombstones: int = 0


def quarantine_bucket(
    place: Place,
    ids: Collection[int],
    *,
    spared: Spared,
    stays: PackedRows | None,
    standing: int | None,
    before_each_page: Callable[[], None],
) -> Reading:
    """Read the whole bucket, quarantine the rows of `ids` that are not held, and read the copies back.

    held_rows: filters held rows; the plan treats them as survivors. survivor_rows: if given, collects every other
    row. existing_tombstones: as `standing` in `scans.BucketPages`.
    before_each_page: may raise to stop; chunks stored until then are not referenced by any step.
    Raises `StoreUnavailable` if the copies read back differ from those sent.
    """
    reading = Reading()
    pages = scans.read_whole_rows(place.channel_id, place.bucket, standing=standing)
    wanted = frozenset(ids)

    def doomed() -> Iterator[list[Row]]:
        for page in pages:
            before_each_page()
            yield _sort_out(page, wanted, reading, stays, spared)

    _keep(place, doomed())
    reading.tombstones = pages.count_tombstones()
    return reading


def quarantine_rows(
    place: Place,
    ids: Sequence[int],
    *,
    spared: Spared | None = None,
    before_each_page: Callable[[], None] = lambda: None,
) -> list[tuple[int, int, bool]]:
    """Quarantine the rows of `ids` with their newest WRITETIME and read the copies back.

    held_rows, before_each_page: as in `quarantine_bucket`.
    Returns (message id, WRITETIME in µs, has an author) of the rows that exist.
    """
    seen: list[tuple[int, int, bool]] = []

    def pages() -> Iterator[list[Row]]:
        for page in scans.read_rows_with_writetime(place.channel_id, place.bucket, ids):
            before_each_page()
            going = page if spared is None else spared.leave(page)
            seen.extend((row[MESSAGE_ID], row[WRITETIME], row[AUTHOR_ID] is not None) for row in going)
            yield going

    _keep(place, pages())
    return seen


def keep_rows(place: Place, chunks: Iterable[list[Row]]) -> int:
    """Quarantine rows that were read from other attempts, with or without WRITETIME, and read them back.

    Return their number.
    """
    count = 0

    def pages() -> Iterator[list[Row]]:
        nonlocal count
        for rows in chunks:
            count += len(rows)
            yield list(map(with_writetime, rows))

    _keep(place, pages())
    return count


def kept_writetimes(place: Place) -> Iterator[list[tuple[int, int]]]:
    """Yield (message id, WRITETIME) of the rows that `quarantine_rows` stored, a chunk at a time."""
    for rows in kept_rows(place):
        yield [(row[MESSAGE_ID], row[WRITETIME]) for row in rows]


def kept_attempts(purge_id: int, channel_id: int, bucket: int) -> list[int]:
    """Return the attempts under which a purge has quarantined anything of a bucket."""
    return [attempt for (attempt,) in cassandra.execute(SELECT_ATTEMPTS, (purge_id, channel_id, bucket))]


def kept_rows(place: Place) -> Iterator[list[Row]]:
    """Yield the rows of an attempt, a chunk at a time, in the order they were read."""
    for page in cassandra.iterate(SELECT_BODIES, place.key(), fetch_size=CHUNKS_PER_PAGE):
        for _, body in page:
            yield decode_chunk(body)


def kept_copies(place: Place, *message_ids: int) -> Iterator[list[Row]]:
    """Yield an attempt's copies of some messages. Only chunks that may contain one are read and unpacked."""
    wanted = frozenset(message_ids)
    for page in cassandra.iterate(SELECT_ENDS, place.key()):
        for chunk, first_id, last_id in page:
            if any(first_id <= message_id <= last_id for message_id in wanted):
                for (body,) in cassandra.execute(SELECT_BODY, (*place.key(), chunk)):
                    yield [row for row in decode_chunk(body) if row[MESSAGE_ID] in wanted]


def erase_kept(purge_id: int, channel_id: int, buckets: Sequence[int], *, stamp: int) -> None:
    """Delete all copies of a purge in some buckets on every replica, and verify by a read that none is left.

    stamp: in µs, later than all writes to these partitions. Idempotent.
    Raises `StoreUnavailable` while a replica is down, or if a copy is left.
    """
    places = [(purge_id, channel_id, bucket) for bucket in buckets]
    for _ in cassandra.execute_window(((ERASE, (stamp, *place)) for place in places), consistency=cassandra.ALL):
        pass
    left = cassandra.execute_window(((SELECT_ANY, place) for place in places), consistency=cassandra.ALL)
    if any(list(left)):
        raise StoreUnavailable("some copies of the purge still exist")


def _sort_out(
    page: list[Row], wanted: frozenset[int], reading: Reading, stays: PackedRows | None, spared: Spared
) -> list[Row]:
    kept = spared.leave([row for row in page if row[MESSAGE_ID] in wanted])
    if len(kept) != len(page):
        going = wanted if not spared.ids else frozenset(row[MESSAGE_ID] for row in kept)
        others = [row for row in page if row[MESSAGE_ID] not in going]
        reading.survivors.extend(row[MESSAGE_ID] for row in others)
        if stays is not None:
            stays.add(others)
    reading.found.extend(row[MESSAGE_ID] for row in kept if row[AUTHOR_ID] is not None)
    return kept


def _keep(place: Place, pages: Iterator[list[Row]]) -> None:
    sent: list[bytes] = []
    for _ in cassandra.execute_window(((INSERT, values) for values in _inserts(place, pages, sent)), window=WINDOW):
        pass
    held = [
        (chunk, hashlib.sha256(body).digest())
        for page in cassandra.iterate(SELECT_BODIES, place.key(), fetch_size=CHUNKS_PER_PAGE)
        for chunk, body in page
    ]
    if held != list(enumerate(sent)):
        raise StoreUnavailable("the quarantined copies differ from what was written; nothing was deleted")


def _inserts(place: Place, pages: Iterator[list[Row]], sent: list[bytes]) -> Iterator[tuple[Any, ...]]:
    for rows in _by_thousand(pages):
        for part, body in encode_chunks(rows):
            # Rows requested by id come in runs, so the lowest and highest id can be anywhere.
            ids = [row[MESSAGE_ID] for row in part]
            yield (*place.key(), len(sent), len(part), min(ids), max(ids), body)
            sent.append(hashlib.sha256(body).digest())


def _by_thousand(pages: Iterator[list[Row]]) -> Iterator[list[Row]]:
    rest: list[Row] = []
    for page in chain(pages, ([],)):
        rest = rest + page if rest else page
        while len(rest) >= ROWS_PER_CHUNK:
            yield rest[:ROWS_PER_CHUNK]
            rest = rest[ROWS_PER_CHUNK:]
    if rest:
        yield rest
