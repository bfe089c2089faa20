"""States of a job's run, jobs that several modules name, and the severity of findings."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class RunState(StrEnum):
    """State of a run.

    skipped: it could not begin in its allowed hours, or another run was active. stopped: by a user.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    STOPPED = "stopped"

    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """Return the pairs that a Django field expects."""
        return [(member.value, member.value) for member in cls]


class Severity(IntEnum):
    """warning: check it today. critical: something is failing or soon will."""

    WARNING = 1
    CRITICAL = 2

    @classmethod
    def choices(cls) -> list[tuple[int, str]]:
        """Return the pairs that a Django field expects."""
        return [(member.value, member.name.lower()) for member in cls]


ENDED = (RunState.DONE, RunState.FAILED, RunState.SKIPPED, RunState.STOPPED)
"""Final states; "run again" creates a new run."""

BUCKET_REPAIR = "repair_bucket"
"""Job that repairs one bucket, its subject. Runs store this name."""
