"""`manage.py audit_verify`: verifies the hash chain of the audit log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import StoreUnavailable
from chatstore.management.inert import InertCommand
from moderation.operations.access.audit_archive import ArchiveVerification, configured_keys, verify_archives
from moderation.operations.access.audit_chain import MAX_COUNTED, Anchor, Verification, verify_chain
from moderation.operations.access.audit_monitoring import may_change_audit_log


class Command(InertCommand):
    help = "Verify the audit log. Names the first changed, missing or inserted entry; then exits with 1."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--after", type=int, default=0, metavar="POSITION", help="trust the chain up to there")
        parser.add_argument("--archives", metavar="DIR", help="verify the archives of the retention in a folder too")
        parser.add_argument("--anchor", metavar="FILE", help="compare with the hashes that AUDIT_ANCHOR_PATH received")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            anchors = _read_anchors(Path(options["anchor"])) if options["anchor"] else []
        except (OSError, ValueError) as error:
            raise CommandError(str(error), returncode=2) from None
        archives = _verify_archives(options, anchors) if options["archives"] else None
        result = verify_chain(after=options["after"], anchors=anchors)
        if archives is not None:
            self.stdout.write("\n".join(_describe_archives(archives)))
        self.stdout.write("\n".join(_describe(result, anchors, has_archives=archives is not None)))
        if may_change_audit_log():
            self.stderr.write("warning: the application's role in Postgres may change the audit log")
        if result.problems or (archives is not None and archives.problems):
            sys.exit(1)


def _read_anchors(path: Path) -> list[Anchor]:
    return [Anchor.from_json(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _verify_archives(options: dict[str, Any], anchors: list[Anchor]) -> ArchiveVerification:
    keys = configured_keys()
    if not keys:
        raise CommandError("AUDIT_ARCHIVE_KEY is needed to verify archives.", returncode=2)
    try:
        return verify_archives(Path(options["archives"]), keys=keys, after=options["after"], anchors=anchors)
    except StoreUnavailable as error:
        raise CommandError(str(error), returncode=2) from None


def _describe_archives(archives: ArchiveVerification) -> list[str]:
    lines = [f"archives   {archives.files:,} files with {archives.entries:,} entries verified"]
    lines += [f"signed     {count:,} by key {name}" for name, count in archives.signed.items()]
    return [*lines, *(f"problem    {problem}" for problem in archives.problems)]


def _describe(result: Verification, anchors: list[Anchor], *, has_archives: bool) -> list[str]:
    lines = [f"verified   {result.verified:,} entries"]
    if result.archived and not has_archives:
        lines.append(f"archived   positions up to {result.archived:,}, not verified here: use --archives")
    if result.newest:
        lines.append(f"newest     position {result.newest.position:,}, hash {result.newest.hash}")
    if anchors:
        lines.append(f"anchors    {len(anchors):,} compared, up to position {max(a.position for a in anchors):,}")
    if result.tail.oldest:
        more = "at least " if result.tail.count == MAX_COUNTED else ""
        since = result.tail.oldest.isoformat(" ", "seconds")
        lines.append(f"not linked {more}{result.tail.count:,} newest entries, since {since}")
    return [*lines, *(f"problem    {problem}" for problem in result.problems)]
