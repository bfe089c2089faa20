"""`manage.py import_discord PATH…`: imports DiscordChatExporter files.

It is part of moderation because it must know the ids that purges deleted.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.controls import show_on_one_line
from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.management.inert import InertCommand
from chatstore.models.users import User
from chatstore.operations.importing.discord import (
    ImportChoices,
    ImportProblem,
    ImportProgress,
    ImportSummary,
    ProblemKind,
    group_problems,
    import_discord,
)
from moderation.management.commands.purge import BAD_INPUT, find_moderator
from moderation.operations.access.imports import record_import_started, record_imported
from moderation.operations.undo.import_guard import DeletedIds, OnRestored, restore_on_import_as

BAR_WIDTH = 30
PLAIN_LINE_SECONDS = 10.0
"""Interval of progress lines without a terminal for the bar."""


class Command(InertCommand):
    help = "Import DiscordChatExporter JSON: files, folders, zip archives. Importing twice changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument(
            "--dry-run", action="store_true", help="report what would be imported without writing anything"
        )
        parser.add_argument(
            "--restore",
            action="store_true",
            help="restore messages that purges deleted (never messages that their authors withdrew)",
        )
        parser.add_argument(
            "--as",
            dest="moderator",
            metavar="USER",
            help="account that requests --restore, for the audit log; default: 'command-line'",
        )
        parser.add_argument(
            "--channel-id",
            action="append",
            default=[],
            type=_parse_given,
            metavar="FILE=ID",
            help="id for a channel without one in its file; may be repeated",
        )
        parser.add_argument(
            "--derive-ids",
            action="store_true",
            help="derive the id from the file's or the channel's name if the channel has none",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        parser.add_argument(
            "--report",
            type=Path,
            metavar="FILE",
            help="write every file and message that was not imported to this file, one JSON object per line",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with ExitStack() as stack:
            report = _open_report(options["report"], stack)
            warnings = stack.enter_context(gathered_warnings(report))
            summary = self._import(options, report)
        if options["json"]:
            self.stdout.write(json.dumps(describe_summary(summary, dry_run=options["dry_run"]), indent=2))
        else:
            self.stdout.write("\n".join(format_summary(summary, dry_run=options["dry_run"])))
        for line in (*format_problems(summary), *warnings.format()):
            self.stderr.write(line)
        if not summary.is_whole:
            if report is None:
                self.stderr.write("Use --report FILE to list each of them.")
            sys.exit(1)

    def _import(self, options: dict[str, Any], report: Callable[[ImportProblem], None] | None) -> ImportSummary:
        restorer, on_restored = _find_restorer(options)
        choices = ImportChoices(
            deleted_ids=DeletedIds,
            on_restored=on_restored,
            on_problem=report,
            channel_ids=dict(options["channel_id"]),
            derives_ids=options["derive_ids"],
            restore=options["restore"],
            dry_run=options["dry_run"],
        )
        bar = _Bar()
        try:
            if not choices.dry_run:
                record_import_started(options["paths"], actor=restorer, restore=choices.restore)
            summary = import_discord(options["paths"], choices=choices, on_progress=bar.show)
            if not choices.dry_run:
                record_imported(summary, actor=restorer)
            return summary
        except BadInput as error:
            raise CommandError(str(error), returncode=2) from None
        except ChatstoreError as error:
            raise CommandError(f"{error} Run the same import again to complete it.") from None
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run the same import again to continue.", returncode=130) from None
        finally:
            bar.end()


def _find_restorer(options: dict[str, Any]) -> tuple[User | None, OnRestored | None]:
    if not options["restore"]:
        return None, None
    try:
        moderator = find_moderator(options["moderator"])
        return moderator, restore_on_import_as(moderator)
    except BadInput as error:
        raise CommandError(str(error), returncode=BAD_INPUT) from None
    except ChatstoreError as error:
        raise CommandError(str(error)) from None


def _parse_given(text: str) -> tuple[str, int]:
    file, _, channel_id = text.rpartition("=")
    try:
        return file, parse_snowflake(channel_id)
    except BadInput as bad:
        raise ArgumentTypeError(f"must be FILE=ID: {bad}") from None


def _open_report(path: Path | None, stack: ExitStack) -> Callable[[ImportProblem], None] | None:
    if path is None:
        return None
    try:
        file = stack.enter_context(path.open("w", encoding="utf-8", errors="backslashreplace"))
    except OSError as error:
        raise CommandError(f"Could not write the report {path}: {error.strerror}.") from None

    def write(problem: ImportProblem) -> None:
        file.write(f"{json.dumps(asdict(problem))}\n")

    return write


class Warnings(logging.Filter):
    """Logging filter that counts warnings by kind instead of showing each; errors are shown as usual."""

    def __init__(self, report: Callable[[ImportProblem], None] | None) -> None:
        super().__init__()
        self._report = report
        self._kinds: dict[str, ProblemKind] = {}
        self._last: logging.LogRecord | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        if record is self._last:
            # The filter sees a record once per handler.
            return False
        self._last = record
        warning = ImportProblem("", str(record.msg), record.getMessage())
        self._kinds.setdefault(warning.kind, ProblemKind(warning)).count += 1
        if self._report is not None:
            self._report(warning)
        return False

    def format(self) -> list[str]:
        """Return one line per kind."""
        return [
            show_on_one_line(f"{each.count:,} × warning: {each.first.reason}" if each.count > 1 else each.first.reason)
            for each in self._kinds.values()
        ]


@contextmanager
def gathered_warnings(report: Callable[[ImportProblem], None] | None) -> Iterator[Warnings]:
    """Collect warnings instead of logging them; an overloaded store causes thousands of them."""
    warnings = Warnings(report)
    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(warnings)
    try:
        yield warnings
    finally:
        for handler in handlers:
            handler.removeFilter(warnings)


def describe_summary(summary: ImportSummary, *, dry_run: bool) -> dict[str, Any]:
    """Return the output of `--json`."""
    counts = {
        name: getattr(summary, name)
        for name in (
            "files",
            "channels",
            "messages",
            "written",
            "already_there",
            "updated",
            "deleted_before",
            "restored",
            "rejected",
        )
    }
    return {
        **counts,
        "failed_files": [{"file": each.file, "reason": each.reason} for each in summary.failed_files],
        "rejections": [
            {"kind": kind, "count": each.count, "first": asdict(each.first)}
            for kind, each in summary.rejections.items()
        ],
        "dry_run": dry_run,
        "seconds": round(summary.seconds, 3),
    }


def format_summary(summary: ImportSummary, *, dry_run: bool) -> list[str]:
    """Return the summary as a few lines of text."""
    rate = summary.messages / summary.seconds if summary.seconds else 0
    read = f"{summary.messages:,} messages in {summary.files:,} files of {summary.channels:,} channels"
    lines = [
        f"{read}, {summary.seconds:,.1f} s ({rate:,.0f}/s)",
        f"  {summary.written:,} {'would be written' if dry_run else 'written'}",
        f"  {summary.already_there:,} already live",
        f"  {summary.updated:,} {'would be replaced' if dry_run else 'replaced'} by a later edit",
        f"  {summary.deleted_before:,} deleted before, not imported",
    ]
    if summary.restored:
        lines.append(f"  {summary.restored:,} of the written messages had been deleted by a purge")
    if summary.rejected:
        lines.append(f"  {summary.rejected:,} rejected")
    if summary.failed_files:
        lines.append(f"  {len(summary.failed_files):,} files failed")
    return lines


def format_problems(summary: ImportSummary) -> list[str]:
    """Return one line per kind of problem, with its first occurrence."""
    lines = []
    for kind, found in (*group_problems(summary.failed_files).items(), *summary.rejections.items()):
        first = found.first
        where = first.file if first.message is None else f"{first.file}, message {first.message:,}"
        example = show_on_one_line(f"{where}: {first.reason}")
        lines.append(example if found.count == 1 else f"{found.count:,} × {kind}. First: {example}")
    return lines


class _Bar:
    """Progress bar: one line of a terminal that is overwritten; without a terminal, a line at intervals."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._shown_at = time.monotonic()
        self._is_shown = False

    def show(self, progress: ImportProgress) -> None:
        now = time.monotonic()
        if self._on_terminal:
            sys.stderr.write(f"\r{draw_progress(progress)}\x1b[K")
            sys.stderr.flush()
            self._is_shown = True
        elif now - self._shown_at > PLAIN_LINE_SECONDS:
            self._shown_at = now
            sys.stderr.write(f"{draw_progress(progress)}\n")

    def end(self) -> None:
        if self._is_shown:
            sys.stderr.write("\n")


def draw_progress(progress: ImportProgress) -> str:
    """Return the bar, percentage, messages, rate and time left, based on the bytes read."""
    share = min(progress.bytes_done / progress.bytes_total, 1.0) if progress.bytes_total else 0.0
    filled = int(share * BAR_WIDTH)
    rate = progress.messages / progress.seconds if progress.seconds else 0.0
    left = progress.seconds / share - progress.seconds if share else 0.0
    minutes, seconds = divmod(round(left), 60)
    bar = "█" * filled + "░" * (BAR_WIDTH - filled)
    return f"{bar} {share:4.0%}  {progress.messages:,} messages  {rate:,.0f}/s  {minutes}:{seconds:02d} left"
