"""Quarantine: copies of the messages that a purge deletes, written and read back before any delete.

An attempt is one read of a bucket, identified by the stamp (µs) issued for it. Chunks of two attempts never mix. A
crash leaves chunks of an attempt that no step refers to; they expire.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from chatstore.domain.buckets import BucketKey, join_keys
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, WRITETIME
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store import cassandra, scans
from moderation.domain.chunks import ROWS_PER_CHUNK, PackedRows, Row, decode_chunk, encode_chunks, with_writetime
from moderation.domain.holds import HeldRows

INSERT = """INSERT INTO quarantine
    (purge_id, channel_id, bucket, attempt, chunk, message_count, first_id, last_id, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
SELECT_ENDS = """SELECT chunk, first_id, last_id FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? AND attempt = ?"""
SELECT_BODY = """SELECT body FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? AND attempt = ? AND chunk = ?"""
SELECT_ATTEMPTS = """SELECT attempt FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ? GROUP BY attempt"""
# Without GROUP BY: Cassandra warns of one over several partitions, and reads all of them within one deadline.
SELECT_CHUNKS = """SELECT channel_id, bucket, attempt FROM quarantine
    WHERE purge_id = ? AND channel_id = ? AND bucket = ?"""
SELECT_CHUNKS_IN_BUCKETS = """SELECT channel_id, bucket, attempt FROM quarantine
    WHERE purge_id = ? AND channel_id IN ? AND bucket IN ?"""

_SELECT_WITH_KEY = "SELECT purge_id, channel_id, bucket, attempt, chunk, body FROM quarantine WHERE purge_id = ?"
SELECT_BODIES = f"{_SELECT_WITH_KEY} AND channel_id = ? AND bucket = ? AND attempt = ?"
SELECT_BODIES_IN_BUCKETS = f"{_SELECT_WITH_KEY} AND channel_id IN ? AND bucket IN ? AND attempt IN ?"

ERASE = "DELETE FROM quarantine USING TIMESTAMP ? WHERE purge_id = ? AND channel_id = ? AND bucket = ?"
SELECT_ANY = "SELECT attempt FROM quarantine WHERE purge_id = ? AND channel_id = ? AND bucket = ? LIMIT 1"

WINDOW = 16
"""Chunks in flight; each may contain up to 1 MiB of JSON."""

CHUNKS_PER_PAGE = 32

CHUNKS_PER_BATCH = 5
BATCH_BYTES = 4_096
"""Small chunks that are written together, and their bytes. Cassandra warns of batches of more than 5 KiB."""

CHUNKS_PER_READ = 10
"""Chunks of several buckets per statement, as in `scans.BUCKETS_PER_READ`; more are read by statements of their own."""


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

    _store_chunks([key], ((key, rows) for rows in selected_rows()))
    reading.tombstones = pages.count_tombstones()
    return reading


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Rows of one bucket to quarantine. seen: those that exist: (message id, WRITETIME in µs, has an author)."""

    key: QuarantineKey
    ids: Sequence[int]
    held_rows: HeldRows = field(default_factory=HeldRows)
    seen: list[tuple[int, int, bool]] = field(default_factory=list)


def quarantine_rows(wanted: Sequence[WantedRows], *, before_each_page: Callable[[], None] = lambda: None) -> None:
    """Quarantine the rows of `ids` that are not held, with their newest WRITETIME, and read the copies back.

    wanted: each of another bucket; its `held_rows` and `seen` are filled. before_each_page: as in `quarantine_bucket`.
    """
    by_bucket = {(one.key.channel_id, one.key.bucket): one for one in wanted}

    def pages() -> Iterator[tuple[QuarantineKey, list[Row]]]:
        ids = {bucket: one.ids for bucket, one in by_bucket.items()}
        # Several reads of one bucket would only wait for each other.
        window = cassandra.WINDOW if len(by_bucket) > 1 else scans.READS_AHEAD
        for bucket, page in scans.read_rows_with_writetime_in(ids, window=window):
            before_each_page()
            one = by_bucket[bucket]
            deleted = one.held_rows.without_held(page)
            one.seen.extend((row[MESSAGE_ID], row[WRITETIME], row[AUTHOR_ID] is not None) for row in deleted)
            yield one.key, deleted

    _store_chunks([one.key for one in wanted], pages())


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

    _store_chunks([key], ((key, rows) for rows in pages()))
    return count


def quarantined_writetimes(key: QuarantineKey) -> Iterator[list[tuple[int, int]]]:
    """Yield (message id, WRITETIME) of the rows that `quarantine_rows` stored, a chunk at a time."""
    for rows in quarantined_rows(key):
        yield [(row[MESSAGE_ID], row[WRITETIME]) for row in rows]


def quarantine_attempts(purge_id: int, channel_id: int, bucket: int) -> list[int]:
    """Return the attempts under which a purge has quarantined anything of a bucket."""
    return [attempt for (attempt,) in cassandra.execute(SELECT_ATTEMPTS, (purge_id, channel_id, bucket))]


def quarantine_attempts_in(places: Sequence[tuple[int, int, int]]) -> Iterator[dict[int, int]]:
    """Yield the same with the chunks of each attempt, for each (channel id, bucket, purge id), in their order."""
    by_purge: dict[int, list[BucketKey]] = defaultdict(list)
    for channel_id, bucket, purge_id in places:
        by_purge[purge_id].append((channel_id, bucket))
    chunks: dict[tuple[int, int, int], Counter[int]] = defaultdict(Counter)
    reads = [(purge_id, read) for purge_id, keys in by_purge.items() for read in _attempt_reads(purge_id, keys)]
    answers = cassandra.execute_window(read for _, read in reads)
    for (purge_id, _read), rows in zip(reads, answers, strict=True):
        for channel_id, bucket, attempt in rows:
            chunks[channel_id, bucket, purge_id][attempt] += 1
    for place in places:
        yield chunks[place]


def _attempt_reads(purge_id: int, keys: Sequence[BucketKey]) -> Iterator[tuple[str, cassandra.Params]]:
    for channel_ids, buckets in join_keys(dict.fromkeys(keys, 1), limit=CHUNKS_PER_READ):
        if len(channel_ids) == len(buckets) == 1:
            # The driver sends it to a replica.
            yield SELECT_CHUNKS, (purge_id, channel_ids[0], buckets[0])
        else:
            yield SELECT_CHUNKS_IN_BUCKETS, (purge_id, channel_ids, buckets)


def quarantined_rows(key: QuarantineKey) -> Iterator[list[Row]]:
    """Yield the rows of an attempt, a chunk at a time, in the order they were read."""
    for _key, rows in quarantined_rows_in({key: 1}):
        yield from rows


def quarantined_rows_in(sizes: Mapping[QuarantineKey, int]) -> Iterator[tuple[QuarantineKey, Iterator[list[Row]]]]:
    """Yield attempts that have rows with these, as `quarantined_rows` does, in any order.

    sizes: chunks of each attempt, at most one of each bucket of a purge. The rows have to be taken before the next
    attempt; those that are not taken are not read, unless the attempt is small.
    """
    by_purge: dict[int, dict[QuarantineKey, int]] = defaultdict(dict)
    for key, size in sizes.items():
        by_purge[key.purge_id][key] = size
    for key, chunks in _read_chunks(chain.from_iterable(map(_chunk_reads, by_purge.values()))):
        yield key, (decode_chunk(body) for _chunk, body in chunks)


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


def batch_chunks(chunks: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Group the rows of chunks, whose last value is the body, for one batch each."""
    together: list[tuple[Any, ...]] = []
    size = 0
    for values in chunks:
        body = values[-1]
        if together and (len(together) == CHUNKS_PER_BATCH or size + len(body) > BATCH_BYTES):
            yield together
            together, size = [], 0
        together.append(values)
        size += len(body)
    if together:
        yield together


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


def _store_chunks(keys: Sequence[QuarantineKey], pages: Iterable[tuple[QuarantineKey, list[Row]]]) -> None:
    """Store rows in chunks and read them back. pages: rows with their key, one key after the other."""
    sent: dict[QuarantineKey, list[bytes]] = {key: [] for key in keys}
    chunks = chain.from_iterable(
        _chunk_rows(key, (rows for _, rows in found), sent[key]) for key, found in groupby(pages, key=itemgetter(0))
    )
    cassandra.execute_batches(INSERT, batch_chunks(chunks), window=WINDOW)
    if sent and _read_hashes(sent) != {key: list(enumerate(hashes)) for key, hashes in sent.items()}:
        raise StoreUnavailable(_("the quarantined copies differ from what was written; nothing was deleted"))


def _read_hashes(sent: Mapping[QuarantineKey, Sequence[bytes]]) -> dict[QuarantineKey, list[tuple[int, bytes]]]:
    """Return (chunk, hash) of the stored chunks of attempts of one purge, each in another bucket."""
    found: dict[QuarantineKey, list[tuple[int, bytes]]] = {key: [] for key in sent}
    reads = _chunk_reads({key: max(1, len(hashes)) for key, hashes in sent.items()})
    for key, chunks in _read_chunks(reads):
        found[key].extend((chunk, hashlib.sha256(body).digest()) for chunk, body in chunks)
    return found


def _chunk_reads(
    sizes: Mapping[QuarantineKey, int],
) -> Iterator[tuple[list[QuarantineKey], tuple[str, cassandra.Params]]]:
    """Yield reads of attempts of one purge, each in another bucket, with these attempts. sizes: chunks of each."""
    by_bucket = {(key.channel_id, key.bucket): key for key in sizes}
    for channel_ids, buckets in join_keys({at: sizes[key] for at, key in by_bucket.items()}, limit=CHUNKS_PER_READ):
        keys = [by_bucket[channel_id, bucket] for channel_id in channel_ids for bucket in buckets]
        if len(keys) == 1:
            # The driver sends it to a replica.
            yield keys, (SELECT_BODIES, keys[0].values())
        else:
            attempts = [key.attempt for key in keys]
            yield keys, (SELECT_BODIES_IN_BUCKETS, (keys[0].purge_id, channel_ids, buckets, attempts))


def _read_chunks(
    reads: Iterable[tuple[list[QuarantineKey], tuple[str, cassandra.Params]]],
) -> Iterator[tuple[QuarantineKey, Iterator[tuple[int, bytes]]]]:
    """Yield attempts with their chunks and bodies, which have to be taken before the next attempt."""
    keys_sent: deque[list[QuarantineKey]] = deque()

    def statements() -> Iterator[tuple[str, cassandra.Params]]:
        for keys, statement in reads:
            keys_sent.append(keys)
            yield statement

    for pages in cassandra.iterate_each(statements(), window=WINDOW, fetch_size=CHUNKS_PER_PAGE):
        keys, rows = keys_sent.popleft(), chain.from_iterable(pages)
        if len(keys) == 1:
            # Whoever has found enough in a large attempt takes no further page; `groupby` would.
            yield keys[0], ((chunk, body) for *_key, chunk, body in rows)
            continue
        for values, found in groupby(rows, key=itemgetter(0, 1, 2, 3)):
            key = QuarantineKey(*values)
            # A statement asks each of its buckets for the attempts of all of them.
            if key in keys:
                yield key, ((chunk, body) for *_key, chunk, body in found)


def _chunk_rows(key: QuarantineKey, pages: Iterable[list[Row]], sent: list[bytes]) -> Iterator[tuple[Any, ...]]:
    for rows in _in_chunks(pages):
        for part, body in encode_chunks(rows):
            # Rows requested by id come in runs, so the lowest and highest id can be anywhere.
            ids = [row[MESSAGE_ID] for row in part]
            yield (*key.values(), len(sent), len(part), min(ids), max(ids), body)
            sent.append(hashlib.sha256(body).digest())


def _in_chunks(pages: Iterable[list[Row]]) -> Iterator[list[Row]]:
    rest: list[Row] = []
    for page in chain(pages, ([],)):
        rest = rest + page if rest else page
        while len(rest) >= ROWS_PER_CHUNK:
            yield rest[:ROWS_PER_CHUNK]
            rest = rest[ROWS_PER_CHUNK:]
    if rest:
        yield rest
