"""Retention of the audit log: old entries go to signed archive files, and only then may be deleted.

- Writing: the entries that follow the last archive and are older than the retention period, in the order of the chain.
  A file gets its name only after it was read back and every hash of it computed again. Any role of Postgres can write.
- Deleting: only the owner of the tables may. Each file is verified again, compared with the chain in the database,
  which is verified too, and then its entries are deleted in one transaction, with the entry that records it.

Both can be killed at any point and repeated. Archives are the beginning of the chain; the database has the rest, and
the last archived link, at which they meet.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.runs import Severity
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.jobs.runs import Claim
from moderation.domain.audit_archive import ArchivedLink, ArchivedRange, WrongArchive, write_archive
from moderation.domain.audit_chain import FIRST
from moderation.models import AuditEntry, AuditLink
from moderation.operations.access.audit import record_action
from moderation.operations.access.audit_chain import (
    BATCH,
    ENTRIES_ARCHIVED,
    Anchor,
    Verification,
    archived_end,
    entry_contents,
    walk_chain,
)
from moderation.store.audit_files import (
    ArchiveFile,
    delete_parts,
    list_archives,
    make_durable,
    store_archive,
    verify_archive,
)

AUDIT_RETENTION = "audit retention"
"""Kind of the finding about archived entries that are still in the database."""

ENTRIES_PER_FILE = 200_000
"""A file of that many entries has about 20 MB; it is verified and deleted as a whole."""

ARCHIVE_LOCK = 4_005_915
"""Key of the Postgres advisory lock that is held while archives are written or archived entries are deleted."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Folder of the archive files, the key that signs them, and for how many days entries stay in the database.

    former_keys: those that signed older files.
    """

    folder: Path
    key: bytes
    days: int
    former_keys: Sequence[bytes] = ()

    @classmethod
    def from_settings(cls) -> Archive:
        """Return the configured one. Raises `BadInput` if entries are kept forever."""
        if not settings.AUDIT_RETENTION_DAYS:
            raise BadInput(_("AUDIT_RETENTION_DAYS is not set: entries are kept forever."))
        key, *former = configured_keys()
        return cls(Path(settings.AUDIT_ARCHIVE_DIR), key, settings.AUDIT_RETENTION_DAYS, former)

    @property
    def keys(self) -> Sequence[bytes]:
        """Keys that may have signed a file."""
        return [self.key, *self.former_keys]

    def archived_before(self) -> dt.datetime:
        """Return the time before which entries are archived: a beginning of a month, so that files are few."""
        oldest = postgres_now() - dt.timedelta(days=self.days)
        return oldest.astimezone(dt.UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def configured_keys() -> list[bytes]:
    """Return the key that signs archives, then the former ones; none if none is set."""
    keys = [settings.AUDIT_ARCHIVE_KEY, *settings.AUDIT_ARCHIVE_KEY_FALLBACKS]
    return [key.encode() for key in keys if key]


@dataclass(slots=True)
class ArchiveVerification:
    """Result of verifying archives. newest: their end. signed: number of files by the name of their key."""

    files: int = 0
    entries: int = 0
    anchors: int = 0
    newest: Anchor | None = None
    signed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def archive_entries(claim: Claim) -> Mapping[str, int]:
    """Run the job "audit_archive": write what is due, and report what can be deleted by the owner of the tables."""
    if not settings.AUDIT_RETENTION_DAYS:
        sync_findings(AUDIT_RETENTION, {})
        return {}
    archive = Archive.from_settings()
    written = write_archives(archive, check=claim.check)
    removable = count_removable(archive)
    summary = ngettext_lazy(
        "%(count)s entry of the audit log is archived and can be deleted: audit_archive --delete, as the owner.",
        "%(count)s entries of the audit log are archived and can be deleted: audit_archive --delete, as the owner.",
        removable,
    )
    sync_findings(AUDIT_RETENTION, {"audit": Problem(Severity.WARNING, summary)} if removable else {})
    return {"archived": sum(one.last - one.first + 1 for one in written), "removable": removable}


def write_archives(
    archive: Archive, *, entries_per_file: int = ENTRIES_PER_FILE, check: Callable[[], object] = lambda: None
) -> list[ArchivedRange]:
    """Write the entries that are due to new files; return what they contain. check: may raise to stop.

    Raises `BadInput` if the chain or the folder does not allow it, `StoreUnavailable`.
    """
    before, written = archive.archived_before(), []
    with _alone():
        delete_parts(archive.folder)
        position = _end_of(archive)
        while links := _due_links(position, before, entries_per_file, check):
            # The hash before them: of the last link that is archived.
            try:
                lines = write_archive(links, previous=_hash_at(position), key=archive.key)
                found = store_archive(archive.folder, lines, key=archive.key)
            except WrongArchive as error:
                raise BadInput(_("The audit log cannot be archived: %(reason)s.", reason=str(error))) from error
            written.append(found)
            position = found.last
    return written


def count_removable(archive: Archive) -> int:
    """Return the number of entries that are archived and still in the database. Raises `StoreUnavailable`."""
    files = list_archives(archive.folder)
    return max(0, files[-1].last - _archived_position()) if files else 0


def delete_archived(archive: Archive, *, actor: User, check: Callable[[], object] = lambda: None) -> int:
    """Delete the entries of every archive from the database, file by file; return their number.

    Raises `Forbidden` unless this connection is the owner's; `BadInput` if a file or the chain is not as it was
    written; `StoreUnavailable`. Files before the first wrong one are done then.
    """
    if not may_delete_entries():
        raise Forbidden(_("Only the owner of the tables may delete archived entries. Nothing was deleted."))
    deleted, before = 0, archive.archived_before()
    with _alone():
        for file in list_archives(archive.folder):
            check()
            if file.last <= _archived_position():
                continue
            if _is_kept_longer(file, before):
                break
            deleted += _delete(_verified(archive, file), file, actor=actor)
    return deleted


def may_delete_entries() -> bool:
    """Return whether the role of this connection has the right to delete entries."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege(%s, 'DELETE')", [AuditEntry._meta.db_table])
        return bool(cursor.fetchone() == (True,))


def verify_archives(
    folder: Path, *, keys: Sequence[bytes], after: int = 0, anchors: Iterable[Anchor] = ()
) -> ArchiveVerification:
    """Verify all archives, that none is missing, and that the chain in the database continues them.

    keys: those that may have signed a file. after: trust the chain up to this position, and skip what is before.
    anchors: those that are archived are compared. Raises `StoreUnavailable`.
    """
    result = ArchiveVerification()
    wanted = {anchor.position: anchor.hash for anchor in anchors}
    archived = archived_end()
    if archived is not None:
        wanted.setdefault(archived.position, archived.hash)
    for problem in _verify_files(folder, keys, after, wanted, result):
        result.problems.append(problem)
        break
    else:
        end = result.newest.position if result.newest else after
        if archived is not None and archived.position > end:
            result.problems.append(f"Positions {end + 1} to {archived.position} are deleted, but in no archive.")
        elif result.newest and not AuditLink.objects.filter(pk=end).exists():
            result.problems.append(f"Position {end} is archived, but the chain in the database does not reach it.")
    return result


def _verify_files(
    folder: Path, keys: Sequence[bytes], after: int, wanted: Mapping[int, str], result: ArchiveVerification
) -> Iterator[str]:
    """Yield what is wrong. wanted: hashes by position."""
    position, previous = after, None if after else FIRST
    for file in list_archives(folder):
        if file.last <= after:
            continue
        if file.first > position + 1:
            yield f"Positions {position + 1} to {file.first - 1} are in no archive."
            return
        try:
            found = _verify_file(file, keys, wanted, result)
            if previous is not None and (file.first != position + 1 or found.previous != previous):
                raise WrongArchive("it does not continue the archive before it")
        except WrongArchive as error:
            yield f"{file.path.name}: {error}."
            return
        position, previous = found.last, found.hash
        result.files += 1
        result.signed[found.key] += 1
        result.entries += found.last - found.first + 1
        result.newest = Anchor(position, previous.hex())


def _verify_file(
    file: ArchiveFile, keys: Sequence[bytes], wanted: Mapping[int, str], result: ArchiveVerification
) -> ArchivedRange:
    """Verify one file, also against the anchors and the chain in the database. Raises `WrongArchive`."""
    different: list[int] = []

    def compare(at: int, link_hash: bytes) -> None:
        if at in wanted:
            result.anchors += 1
            if wanted[at] != link_hash.hex():
                different.append(at)

    found = verify_archive(file, keys=keys, on_link=compare)
    if different:
        raise WrongArchive(f"position {different[0]} has another hash than its anchor")
    stored = AuditLink.objects.filter(pk=found.last).values_list("hash", flat=True).first()
    if stored is not None and bytes(stored) != found.hash:
        raise WrongArchive(f"position {found.last} has another hash in the database")
    return found


def _due_links(
    after: int, before: dt.datetime, limit: int, check: Callable[[], object]
) -> Iterator[ArchivedLink] | None:
    """Return an iterator of the next links whose entries were made before that time; None without any."""
    links = _links_after(after, before, limit, check)
    first = next(links, None)
    return None if first is None else _chain(first, links)


def _chain(first: ArchivedLink, others: Iterator[ArchivedLink]) -> Iterator[ArchivedLink]:
    yield first
    yield from others


def _links_after(after: int, before: dt.datetime, limit: int, check: Callable[[], object]) -> Iterator[ArchivedLink]:
    position = after
    while found := list(AuditLink.objects.filter(position__gt=position).order_by("position")[:BATCH]):
        check()
        entries = {entry.id: entry for entry in entry_contents([link.entry_id for link in found])}
        for link in found:
            entry = entries.get(link.entry_id)
            if link.position != position + 1 or entry is None:
                raise BadInput(
                    _("The audit log cannot be archived: position %(position)s is missing.", position=position + 1)
                )
            if entry.at >= before or position - after == limit:
                return
            packed = None if entry.ids_hash is None else _packed_ids(entry.id)
            yield ArchivedLink(link.position, link.version, bytes(link.hash), link.linked_at, entry, packed)
            position += 1


def _packed_ids(entry_id: int) -> bytes:
    packed = AuditEntry.objects.values_list("ids", flat=True).get(pk=entry_id)
    return bytes(packed or b"")


def _end_of(archive: Archive) -> int:
    """Return the last archived position. Raises `BadInput` if the files are those of another database."""
    files, archived = list_archives(archive.folder), _archived_position()
    end = max(files[-1].last if files else 0, archived)
    link = AuditLink.objects.filter(pk=end).first()
    is_other = end > 0 and link is None
    if link is not None and files and files[-1].last == end:
        # After a restore from a backup there may be another link at the same position.
        is_other = _read_whole(archive, files[-1]).hash != bytes(link.hash)
    if is_other:
        raise BadInput(_("The archives in %(folder)s are not those of this database.", folder=str(archive.folder)))
    return end


def _archived_position() -> int:
    archived = archived_end()
    return archived.position if archived else 0


def _hash_at(position: int) -> bytes:
    """Return the hash of a link; that before the first one for 0."""
    return bytes(AuditLink.objects.values_list("hash", flat=True).get(pk=position)) if position else FIRST


def _verified(archive: Archive, file: ArchiveFile) -> ArchivedRange:
    """Verify a file and the same part of the chain in the database. Raises `BadInput`, `StoreUnavailable`."""
    begins_after = _archived_position()
    found = _read_whole(archive, file)
    if found.first != begins_after + 1 or found.previous != _hash_at(begins_after):
        raise _refuse(file, "it does not continue what was deleted before")
    for problem in walk_chain(begins_after, Verification(), until=found.last):
        raise _refuse(file, problem.rstrip("."))
    # Both chains are whole and begin and end with the same hashes: they have the same entries.
    if not AuditLink.objects.filter(pk=found.last, hash=found.hash).exists():
        raise _refuse(file, "it differs from the database")
    make_durable(file)
    return found


def _read_whole(archive: Archive, file: ArchiveFile) -> ArchivedRange:
    """Verify a file by itself. Raises `BadInput`, `StoreUnavailable`."""
    try:
        return verify_archive(file, keys=archive.keys)
    except WrongArchive as error:
        raise _refuse(file, str(error)) from error


def _refuse(file: ArchiveFile, reason: str) -> BadInput:
    return BadInput(_("%(file)s: %(reason)s. Nothing of it was deleted.", file=file.path.name, reason=reason))


def _is_kept_longer(file: ArchiveFile, before: dt.datetime) -> bool:
    """Return whether the retention period was extended since the file was written."""
    newest = AuditLink.objects.filter(pk=file.last).values_list("entry_id", flat=True).first()
    return newest is not None and AuditEntry.objects.filter(pk=newest, at__gte=before).exists()


@transaction.atomic
def _delete(found: ArchivedRange, file: ArchiveFile, *, actor: User) -> int:
    """Delete the entries, and the links but for the last one, at which the chain in the database begins."""
    entries, links = AuditEntry._meta.db_table, AuditLink._meta.db_table
    with connection.cursor() as cursor:
        # The trigger allows it in this transaction only.
        cursor.execute("SET LOCAL chatstore.audit_retention = 'on'")
        cursor.execute(
            f"DELETE FROM {entries} WHERE id IN (SELECT entry_id FROM {links} WHERE position BETWEEN %s AND %s)",
            [found.first, found.last],
        )
        deleted = int(cursor.rowcount)
        cursor.execute(f"DELETE FROM {links} WHERE position < %s", [found.last])
        cursor.execute("SET LOCAL chatstore.audit_retention = 'off'")
    if deleted != found.last - found.first + 1:
        raise _refuse(file, "the database has not all of its entries")
    details = {"first": found.first, "last": found.last, "hash": found.hash.hex(), "file": file.path.name}
    record_action(ENTRIES_ARCHIVED, actor=actor, details=details)
    return deleted


@contextmanager
def _alone() -> Iterator[None]:
    """Raise `BadInput` if another process writes archives or deletes entries."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ARCHIVE_LOCK])
        if cursor.fetchone() != (True,):
            raise BadInput(_("Another process archives the audit log at present."))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ARCHIVE_LOCK])
