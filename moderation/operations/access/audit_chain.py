"""Hash chain of the audit log: linking new entries, and verifying all.

Actions insert entries without a link and never wait for each other. One linker at a time gives them their positions, in
batches, in the order in which it finds them. A trigger stores the id of every entry as an `UnlinkedEntry` in the
transaction of the entry, and the linker deletes this row only in the transaction that inserts the link. So each
committed entry is linked exactly once, however late its transaction commits, and wherever the linker is killed.

The first links may have been archived and deleted with their entries (`audit_archive`). Then the chain in the database
begins after the last of them, whose link remains.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.db import connection, transaction
from django.db.models import BinaryField, F, Func

from chatstore.domain.row_ids import decode_row_id
from moderation.domain.audit_chain import FIRST, VERSION, EntryContent, link_hash
from moderation.models import AuditEntry, AuditLink, UnlinkedEntry

LINKER_LOCK = 4_005_914
"""Key of the Postgres advisory lock of the linker."""

BATCH = 1_000
"""Entries that one transaction links, or that are verified at a time."""

LINK_SECONDS = 5.0
"""Time after which the linker leaves the rest to the next poll."""

ENTRIES_ARCHIVED = "entries_archived"
"""Action that records up to which position entries were archived and deleted."""

MAX_COUNTED = 10_000
"""Number of unlinked entries from which on they are not counted."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Entries without a link. count: at most `MAX_COUNTED`. oldest: when the first one was made; None without any."""

    count: int
    oldest: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Anchor:
    """Position and hash of a link, as stored outside of the database."""

    position: int
    hash: str

    def as_json(self) -> str:
        """Return a line of JSON."""
        return json.dumps({"position": self.position, "hash": self.hash}, sort_keys=True)

    @classmethod
    def from_json(cls, line: str) -> Anchor:
        """Parse a line. Raises `ValueError` for anything else."""
        value = json.loads(line)
        try:
            return cls(int(value["position"]), str(value["hash"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an anchor of the audit log: {line!r}") from error


@dataclass(slots=True)
class Verification:
    """Result of a verification. problems: English sentences; the first one names the first wrong entry of the chain.

    archived: the position up to which entries were archived and deleted, whose hash is trusted here.
    """

    verified: int = 0
    archived: int = 0
    newest: Anchor | None = None
    tail: Tail = field(default_factory=lambda: Tail(0, None))
    problems: list[str] = field(default_factory=list)


def link_entries(*, seconds: float = LINK_SECONDS) -> int:
    """Link entries until none is left or the time has passed; return their number. 0 if another linker runs."""
    end, linked = time.monotonic() + seconds, 0
    while count := _link_batch():
        linked += count
        if time.monotonic() >= end:
            break
    return linked


def _link_batch() -> int:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Until the transaction ends: then the next linker sees its links.
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LINKER_LOCK])
            if cursor.fetchone() != (True,):
                return 0
        entries = _next_entries()
        newest = newest_anchor()
        position, previous = (newest.position, bytes.fromhex(newest.hash)) if newest else (0, FIRST)
        hashes = []
        for entry in entries:
            position += 1
            previous = link_hash(entry, position=position, previous=previous)
            hashes.append(previous)
        _insert_links([entry.id for entry in entries], hashes, last=position)
    return len(entries)


def _insert_links(ids: list[int], hashes: list[bytes], *, last: int) -> None:
    """Insert links whose last position is given, and take their entries from the queue: two statements."""
    with connection.cursor() as cursor:
        # Half the time of `bulk_create`.
        cursor.execute(
            f"INSERT INTO {AuditLink._meta.db_table} (position, entry_id, version, hash) "
            "SELECT %s + n, entry_id, %s, hash "
            "FROM unnest(%s::bigint[], %s::bytea[]) WITH ORDINALITY AS linked (entry_id, hash, n)",
            [last - len(ids), VERSION, ids, hashes],
        )
        cursor.execute(f"DELETE FROM {UnlinkedEntry._meta.db_table} WHERE entry_id = ANY(%s)", [ids])


def _next_entries() -> list[EntryContent]:
    """Return the oldest unlinked entries. Rows whose entries were deleted remain, as evidence, and are skipped."""
    after = 0
    while ids := list(
        UnlinkedEntry.objects.filter(entry_id__gt=after).order_by("entry_id").values_list("entry_id", flat=True)[:BATCH]
    ):
        if entries := entry_contents(ids):
            return entries
        after = ids[-1]
    return []


def entry_contents(ids: Iterable[int]) -> list[EntryContent]:
    """Return what the hashes are made of, for those of the entries that exist."""
    # Postgres hashes the ids: those of one entry may take megabytes.
    ids_hash = Func(F("ids"), function="sha256", output_field=BinaryField(null=True))
    rows = AuditEntry.objects.filter(pk__in=ids).annotate(ids_hash=ids_hash).order_by("pk")
    names = [name for name in EntryContent.__slots__ if name != "ids_hash"]
    return [
        EntryContent(**dict(zip(names, row[:-1], strict=True)), ids_hash=None if row[-1] is None else bytes(row[-1]))
        for row in rows.values_list(*names, "ids_hash")
    ]


def newest_anchor() -> Anchor | None:
    """Return the end of the chain; None before the first link."""
    newest = AuditLink.objects.order_by("-position").values_list("position", "hash").first()
    return Anchor(newest[0], bytes(newest[1]).hex()) if newest else None


def unlinked_tail() -> Tail:
    """Return how many entries have no link yet, and since when."""
    rows = UnlinkedEntry.objects.order_by("entry_id")
    oldest = rows.values_list("entry_id", flat=True).first()
    if oldest is None:
        return Tail(0, None)
    return Tail(rows[:MAX_COUNTED].count(), decode_row_id(oldest).time)


def archived_end() -> Anchor | None:
    """Return the end of what was archived and deleted, as the entries about it record it; None without any."""
    # Not the newest by id: ids follow the clock, which may have been set back.
    details = AuditEntry.objects.filter(action=ENTRIES_ARCHIVED).values_list("details", flat=True)
    newest = max(details, key=lambda details: int(details["last"]), default=None)
    return None if newest is None else Anchor(int(newest["last"]), str(newest["hash"]))


def verify_chain(*, after: int = 0, anchors: Iterable[Anchor] = ()) -> Verification:
    """Verify the links after a position, which is trusted, with their entries; find entries outside of the chain.

    Reads a batch at a time. Stops at the first wrong link, since all that follow depend on it.
    """
    result = Verification()
    archived = archived_end()
    if archived is not None:
        result.archived = archived.position
        result.problems += _check_archived_end(archived)
    for problem in walk_chain(max(after, result.archived), result):
        result.problems.append(problem)
        break
    # Older ones are compared with the archives.
    result.problems += _compare_anchors(one for one in anchors if one.position >= result.archived)
    result.problems += _find_outside()
    result.tail = unlinked_tail()
    return result


def _check_archived_end(archived: Anchor) -> Iterator[str]:
    stored = AuditLink.objects.filter(pk=archived.position).values_list("hash", flat=True).first()
    if stored is not None and bytes(stored).hex() != archived.hash:
        yield f"Position {archived.position} has another hash than the entry about the archive."
    if AuditLink.objects.filter(pk__lt=archived.position).exists():
        yield f"Positions before {archived.position} are recorded as archived and deleted, but are still there."


def walk_chain(after: int, result: Verification, *, until: int | None = None) -> Iterator[str]:
    """Verify the links after a position: yield what is wrong, and count what is right. until: the last position."""
    position, previous = after, FIRST
    if after:
        stored = AuditLink.objects.filter(pk=after).values_list("hash", flat=True).first()
        if stored is None:
            yield f"Position {after} is missing in the chain."
            return
        previous = bytes(stored)
    wanted = AuditLink.objects.all() if until is None else AuditLink.objects.filter(position__lte=until)
    while links := list(wanted.filter(position__gt=position).order_by("position")[:BATCH]):
        entries = {entry.id: entry for entry in entry_contents([link.entry_id for link in links])}
        for link in links:
            position += 1
            if link.position != position:
                yield f"Position {position} is missing in the chain; the next one is {link.position}."
                return
            named = f"Entry {link.entry_id} (position {position})"
            entry = entries.get(link.entry_id)
            if entry is None:
                yield f"{named} is missing."
                return
            try:
                expected = link_hash(entry, position=position, previous=previous, version=link.version)
            except ValueError as error:
                yield f"{named} cannot be verified: {error}."
                return
            if bytes(link.hash) != expected:
                yield f"{named} was changed, or inserted into the chain."
                return
            previous = expected
            result.verified += 1
            result.newest = Anchor(position, expected.hex())


def _compare_anchors(anchors: Iterable[Anchor]) -> Iterator[str]:
    for anchor in anchors:
        stored = AuditLink.objects.filter(pk=anchor.position).values_list("hash", flat=True).first()
        if stored is None:
            yield f"The chain ends before position {anchor.position}, which an anchor names."
            return
        if bytes(stored).hex() != anchor.hash:
            yield f"Position {anchor.position} has another hash than its anchor: the chain was rewritten up to there."
            return


def _find_outside() -> Iterator[str]:
    """Yield the first entry that is neither linked nor waiting for its link, and the first that waits but is missing.

    Each is one statement: an entry, its link and its waiting row always appear and disappear together.
    """
    entry, link, waiting = (model._meta.db_table for model in (AuditEntry, AuditLink, UnlinkedEntry))
    outside = (
        f"SELECT id FROM {entry} WHERE NOT EXISTS (SELECT FROM {link} WHERE entry_id = id) "
        f"AND NOT EXISTS (SELECT FROM {waiting} WHERE entry_id = id) ORDER BY id LIMIT 1"
    )
    deleted = (
        f"SELECT entry_id FROM {waiting} WHERE NOT EXISTS (SELECT FROM {entry} WHERE id = entry_id) "
        "ORDER BY entry_id LIMIT 1"
    )
    for sql, text in (
        (outside, "Entry {} was inserted past the chain, or its link was deleted."),
        (deleted, "Entry {} was deleted before it was linked."),
    ):
        with connection.cursor() as cursor:
            cursor.execute(sql)
            row = cursor.fetchone()
        if row is not None:
            yield text.format(row[0])
