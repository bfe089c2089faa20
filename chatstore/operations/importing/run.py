"""One run of an import: how it is to be done, how far it is, what came of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chatstore.operations.importing.export_files import ExportFile, ImportProblem, OpenArchives
from chatstore.operations.importing.loads import Standing

LEASE_SECONDS = 30.0
"""An import holds its channel by lease, so that a killed one does not hold it for ever."""

TELL_EVERY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is: bytes of files read, of all; messages read; seconds since it began."""

    bytes_done: int
    bytes_total: int
    messages: int
    seconds: float


@dataclass(slots=True)
class ProblemKind:
    """How often the same thing was wrong, and the first time."""

    first: ImportProblem
    count: int = 0


def group_problems(problems: Iterable[ImportProblem]) -> dict[str, ProblemKind]:
    """The kinds among some problems, in the order of their first."""
    kinds: dict[str, ProblemKind] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, ProblemKind(problem)).count += 1
    return kinds


@dataclass(slots=True)
class ImportSummary:
    """What an import did: messages = written + already_there + updated + removed_before + rejected.

    restored: those of `written` for which a purge stood. rejections: by kind of problem.
    seconds: until everything was written and counted.
    """

    files: int = 0
    channels: int = 0
    messages: int = 0
    written: int = 0
    already_there: int = 0
    updated: int = 0
    removed_before: int = 0
    restored: int = 0
    rejected: int = 0
    failed_files: list[ImportProblem] = field(default_factory=list)
    rejections: dict[str, ProblemKind] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether every file was read to its end and every message of it was taken."""
        return not self.failed_files and not self.rejected


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """How to import. `restore`: what standing purges removed comes back. `dry_run`: nothing is written.

    standing: asked for channels that were locked, returns for which ids of a (channel, bucket) a
    purge stands. on_put_back: told which ids of a (channel, bucket), after they were written, no
    purge stands for any more. channel_ids: by file, the ids of channels that have none there; derives_ids: of the
    others, made of their names. on_problem: told of each file and message that is not imported.
    lease_seconds: how long a killed import holds its channel.
    """

    standing: Standing
    on_put_back: Callable[[int, int, Sequence[int]], None] | None = None
    channel_ids: Mapping[str, int] = field(default_factory=dict)
    derives_ids: bool = False
    on_problem: Callable[[ImportProblem], None] | None = None
    restore: bool = False
    dry_run: bool = False
    lease_seconds: float = LEASE_SECONDS


class ImportRun:
    """What the channels of one import share. archives: open until they are closed.

    last_clear: when `live` was last cleared, by `time.monotonic()`. tell: hears of progress.
    """

    def __init__(self, choices: ImportChoices, tell: Callable[[ImportProgress], None] | None) -> None:
        self.choices = choices
        self.summary = ImportSummary()
        self.job = f"import:{uuid.uuid4()}"
        self.last_clear: float | None = None
        self.archives = OpenArchives()
        self.bytes_total = 0
        self._tell = tell
        self._bytes_done = 0
        self._began = time.monotonic()
        self._told_at = 0.0

    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    def fail(self, file: ExportFile, reason: str, *, kind: str = "") -> None:
        """Name a file that could not be imported, or not to its end."""
        self.add_failed(ImportProblem(file.name, kind or reason, reason))

    def crash(self, file: ExportFile, number: int, error: Exception) -> None:
        """Name a file that brought a fault of ours to light, and the message's number: the others are imported."""
        name = type(error).__name__
        self.fail(file, f"an unexpected {name} at message {number:,}: {error}", kind=f"an unexpected {name}")

    def add_failed(self, problem: ImportProblem) -> None:
        self.summary.failed_files.append(problem)
        self._report(problem)

    def add_bytes(self, count: int) -> None:
        """Told by the reader; tells on, a few times a second."""
        self._bytes_done += count
        now = time.monotonic()
        if self._tell is not None and now - self._told_at > TELL_EVERY_SECONDS:
            self._told_at = now
            seconds = now - self._began
            self._tell(ImportProgress(self._bytes_done, self.bytes_total, self.summary.messages, seconds))

    def reject(self, problem: ImportProblem) -> None:
        """Count a message that cannot be imported, under its kind."""
        self.summary.rejected += 1
        self.summary.rejections.setdefault(problem.kind, ProblemKind(problem)).count += 1
        self._report(problem)

    def _report(self, problem: ImportProblem) -> None:
        if self.choices.on_problem is not None:
            self.choices.on_problem(problem)
