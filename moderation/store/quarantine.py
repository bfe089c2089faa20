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
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store import cassandra, scans
from moderation.domain.chunks import ROWS_PER_CHUNK, PackedRows, Row, decode_chunk, encode_chunks, with_writetime
from moderation.domain.holds import HeldRows

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
class QuarantineKey:
    """Key of an attempt's chunks."""

    purge_id: int
    channel_id: int
    bucket: int
    attempt: int

    def values(self) -> tuple[int, int, int, int]:
        """Return the values that every statement binds first."""
        return self.purge_id, self.channel_id, self.bucket, self.attempt


@dataclass(slots=True)
class QuarantineRead:
    """Result of reading a whole bucket. Ids are in the read's order, descending; 8 bytes an id, not 40 as in a list.

    found: ids of the manifest that are present with their author. survivors: every present id that is not in the
    manifest.
    """

    found: array[int] = field(default_factory=lambda: array("q"))
    survivors: array[int] = field(default_factory=lambda: array("q"))
    tombstones: int = 0


def quarantine_bucket(
    key: QuarantineKey,
    ids: Collection[int],
    *,
    held_rows: HeldRows,
    survivor_rows: PackedRows | None,
    existing_tombstones: int | None,
    before_each_page: Callable[[], None],
) -> QuarantineRead:
    """Read the whole bucket, quarantine the rows of `ids` that are not held, and read the copies back.

    held_rows: filters held rows; the plan treats them as survivors. survivor_rows: if given, collects every other
    row. existing_tombstones: as `known_tombstones` in `scans.BucketPages`.
    before_each_page: may raise to stop; chunks stored until then are not referenced by any step.
    Raises `StoreUnavailable` if the copies read back differ from those sent.
    """
    reading = QuarantineRead()
    pages = scans.read_whole_rows(key.channel_id, key.bucket, known_tombstones=existing_tombstones)
    wanted = frozenset(ids)

    def selected_rows() -> Iterator[list[Row]]:
        for page in pages:
            before_each_page()
            yield _split_page(page, wanted, reading, survivor_rows, held_rows)

    _store_chunks(key, selected_rows())
    reading.tombstones = pages.count_tombstones()
    return reading


def quarantine_rows(
    key: QuarantineKey,
    ids: Sequence[int],
    *,
    held_rows: HeldRows | None = None,
    before_each_page: Callable[[], None] = lambda: None,
) -> list[tuple[int, int, bool]]:
    """Quarantine the rows of `ids` with their newest WRITETIME and read the copies back.

    held_rows, before_each_page: as in `quarantine_bucket`.
    Returns (message id, WRITETIME in µs, has an author) of the rows that exist.
    """
    seen: list[tuple[int, int, bool]] = []

    def pages() -> Iterator[list[Row]]:
        for page in scans.read_rows_with_writetime(key.channel_id, key.bucket, ids):
            before_each_page()
            deleted = page if held_rows is None else held_rows.without_held(page)
            seen.extend((row[MESSAGE_ID], row[WRITETIME], row[AUTHOR_ID] is not None) for row in deleted)
            yield deleted

    _store_chunks(key, pages())
    return seen


def quarantine_copies(key: QuarantineKey, chunks: Iterable[list[Row]]) -> int:
    """Quarantine rows that were read from other attempts, with or without WRITETIME, and read them back.

    Return their number.
    """
    count = 0

    def pages() -> Iterator[list[Row]]:
        nonlocal count
        for rows in chunks:
            count += len(rows)
            yield list(map(with_writetime, rows))

    _store_chunks(key, pages())
    return count


def quarantined_writetimes(key: QuarantineKey) -> Iterator[list[tuple[int, int]]]:
    """Yield (message id, WRITETIME) of the rows that `quarantine_rows` stored, a chunk at a time."""
    for rows in quarantined_rows(key):
        yield [(row[MESSAGE_ID], row[WRITETIME]) for row in rows]


def quarantine_attempts(purge_id: int, channel_id: int, bucket: int) -> list[int]:
    """Return the attempts under which a purge has quarantined anything of a bucket."""
    return [attempt for (attempt,) in cassandra.execute(SELECT_ATTEMPTS, (purge_id, channel_id, bucket))]


def quarantined_rows(key: QuarantineKey) -> Iterator[list[Row]]:
    """Yield the rows of an attempt, a chunk at a time, in the order they were read."""
    for page in cassandra.iterate(SELECT_BODIES, key.values(), fetch_size=CHUNKS_PER_PAGE):
        for _chunk, body in page:
            yield decode_chunk(body)


def quarantined_copies(key: QuarantineKey, *message_ids: int) -> Iterator[list[Row]]:
    """Yield an attempt's copies of some messages. Only chunks that may contain one are read and unpacked."""
    wanted = frozenset(message_ids)
    for page in cassandra.iterate(SELECT_ENDS, key.values()):
        for chunk, first_id, last_id in page:
            if any(first_id <= message_id <= last_id for message_id in wanted):
                for (body,) in cassandra.execute(SELECT_BODY, (*key.values(), chunk)):
                    yield [row for row in decode_chunk(body) if row[MESSAGE_ID] in wanted]


def erase_quarantined(purge_id: int, channel_id: int, buckets: Sequence[int], *, stamp: int) -> None:
    """Delete all copies of a purge in some buckets on every replica, and verify by a read that none is left.

    stamp: in µs, later than all writes to these partitions. Idempotent.
    Raises `StoreUnavailable` while a replica is down, or if a copy is left.
    """
    keys = [(purge_id, channel_id, bucket) for bucket in buckets]
    for _rows in cassandra.execute_window(((ERASE, (stamp, *key)) for key in keys), consistency=cassandra.ALL):
        pass
    remaining = cassandra.execute_window(((SELECT_ANY, key) for key in keys), consistency=cassandra.ALL)
    if any(list(remaining)):
        raise StoreUnavailable(_("some copies of the purge still exist"))


def _split_page(
    page: list[Row],
    wanted: frozenset[int],
    reading: QuarantineRead,
    survivor_rows: PackedRows | None,
    held_rows: HeldRows,
) -> list[Row]:
    unheld = held_rows.without_held([row for row in page if row[MESSAGE_ID] in wanted])
    if len(unheld) != len(page):
        deleted = wanted if not held_rows.ids else frozenset(row[MESSAGE_ID] for row in unheld)
        others = [row for row in page if row[MESSAGE_ID] not in deleted]
        reading.survivors.extend(row[MESSAGE_ID] for row in others)
        if survivor_rows is not None:
            survivor_rows.add(others)
    reading.found.extend(row[MESSAGE_ID] for row in unheld if row[AUTHOR_ID] is not None)
    return unheld


def _store_chunks(key: QuarantineKey, pages: Iterator[list[Row]]) -> None:
    sent: list[bytes] = []
    jobs = ((INSERT, values) for values in _chunk_rows(key, pages, sent))
    for _rows in cassandra.execute_window(jobs, window=WINDOW):
        pass
    stored = [
        (chunk, hashlib.sha256(body).digest())
        for page in cassandra.iterate(SELECT_BODIES, key.values(), fetch_size=CHUNKS_PER_PAGE)
        for chunk, body in page
    ]
    if stored != list(enumerate(sent)):
        raise StoreUnavailable(_("the quarantined copies differ from what was written; nothing was deleted"))


def _chunk_rows(key: QuarantineKey, pages: Iterator[list[Row]], sent: list[bytes]) -> Iterator[tuple[Any, ...]]:
    for rows in _in_chunks(pages):
        for part, body in encode_chunks(rows):
            # Rows requested by id come in runs, so the lowest and highest id can be anywhere.
            ids = [row[MESSAGE_ID] for row in part]
            yield (*key.values(), len(sent), len(part), min(ids), max(ids), body)
            sent.append(hashlib.sha256(body).digest())


def _in_chunks(pages: Iterator[list[Row]]) -> Iterator[list[Row]]:
    rest: list[Row] = []
    for page in chain(pages, ([],)):
        rest = rest + page if rest else page
        while len(rest) >= ROWS_PER_CHUNK:
            yield rest[:ROWS_PER_CHUNK]
            rest = rest[ROWS_PER_CHUNK:]
    if rest:
        yield rest
