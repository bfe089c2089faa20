"""State of one import: its options, progress and summary."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chatstore.operations.importing.export_files import ExportFile, ImportProblem, OpenArchives
from chatstore.operations.importing.loads import DeletedIdsFactory

LEASE_SECONDS = 30.0
"""Imports lock channels with a lease, so that a killed import does not keep them locked."""

PROGRESS_INTERVAL_SECONDS = 0.2
"""Minimum interval between progress reports."""


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """Progress of an import: bytes read, total bytes, messages read, and seconds since it began."""

    bytes_done: int
    bytes_total: int
    messages: int
    seconds: float


@dataclass(slots=True)
class ProblemKind:
    """Number of problems of one kind, and the first of them."""

    first: ImportProblem
    count: int = 0


def group_problems(problems: Iterable[ImportProblem]) -> dict[str, ProblemKind]:
    """Return problems by kind, in the order of their first occurrence."""
    kinds: dict[str, ProblemKind] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, ProblemKind(problem)).count += 1
    return kinds


@dataclass(slots=True)
class ImportSummary:
    """Result of an import: messages = written + already_there + updated + deleted_before + rejected.

    restored: those of `written` that a purge had deleted. rejections: by kind of problem.
    seconds: until everything was written and counted.
    """

    files: int = 0
    channels: int = 0
    messages: int = 0
    written: int = 0
    already_there: int = 0
    updated: int = 0
    deleted_before: int = 0
    restored: int = 0
    rejected: int = 0
    failed_files: list[ImportProblem] = field(default_factory=list)
    rejections: dict[str, ProblemKind] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """True if every file was read completely and every message in it was accepted."""
        return not self.failed_files and not self.rejected


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """Options of an import. restore: restore messages that purges deleted. dry_run: write nothing.

    deleted_ids: called with the locked channels; returns a function from (channel, bucket) to the ids that purges
    deleted. on_restored: called with (channel, bucket, ids) of restored messages after they were written.
    channel_ids: by file, ids for channels that have none there; derives_ids: derive ids of the others from their
    file names. on_problem: called for each file and message that is not imported. lease_seconds: how long a
    killed import keeps its channels locked.
    """

    deleted_ids: DeletedIdsFactory
    on_restored: Callable[[int, int, Sequence[int]], None] | None = None
    channel_ids: Mapping[str, int] = field(default_factory=dict)
    derives_ids: bool = False
    on_problem: Callable[[ImportProblem], None] | None = None
    restore: bool = False
    dry_run: bool = False
    lease_seconds: float = LEASE_SECONDS


class ImportRun:
    """State shared by the channels of one import. archives: open until they are closed.

    last_clear: when `live` was last cleared, by `time.monotonic()`. on_progress: called with progress.
    """

    def __init__(self, choices: ImportChoices, on_progress: Callable[[ImportProgress], None] | None) -> None:
        self.choices = choices
        self.summary = ImportSummary()
        self.job = f"import:{uuid.uuid4()}"
        self.last_clear: float | None = None
        self.archives = OpenArchives()
        self.bytes_total = 0
        self._on_progress = on_progress
        self._bytes_done = 0
        self._began = time.monotonic()
        self._reported_at = 0.0

    def seconds(self) -> float:
        """Return seconds since the run began."""
        return time.monotonic() - self._began

    def fail(self, file: ExportFile, reason: str, *, kind: str = "") -> None:
        """Record a file that could not be imported, or not completely."""
        self.add_failed(ImportProblem(file.name, kind or reason, reason))

    def crash(self, file: ExportFile, number: int, error: Exception) -> None:
        """Record an unexpected error and its message number; the other files are imported."""
        name = type(error).__name__
        self.fail(file, f"an unexpected {name} at message {number:,}: {error}", kind=f"an unexpected {name}")

    def add_failed(self, problem: ImportProblem) -> None:
        self.summary.failed_files.append(problem)
        self._report(problem)

    def add_bytes(self, count: int) -> None:
        """Count bytes read, and report progress a few times per second."""
        self._bytes_done += count
        now = time.monotonic()
        if self._on_progress is not None and now - self._reported_at > PROGRESS_INTERVAL_SECONDS:
            self._reported_at = now
            seconds = now - self._began
            self._on_progress(ImportProgress(self._bytes_done, self.bytes_total, self.summary.messages, seconds))

    def reject(self, problem: ImportProblem) -> None:
        """Count a message that cannot be imported, by kind of problem."""
        self.summary.rejected += 1
        self.summary.rejections.setdefault(problem.kind, ProblemKind(problem)).count += 1
        self._report(problem)

    def _report(self, problem: ImportProblem) -> None:
        if self.choices.on_problem is not None:
            self.choices.on_problem(problem)
