"""The states of a job's run, and how bad a finding is."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class RunState(StrEnum):
    """A run waits, is at work, and has ended well or not.

    skipped: it could not begin in its hours, or while another one was at work. stopped: by a person.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    STOPPED = "stopped"

    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """The pairs that a Django field wants."""
        return [(member.value, member.value) for member in cls]


class Severity(IntEnum):
    """amber: look at it today. red: something is failing, or soon will."""

    AMBER = 1
    RED = 2

    @classmethod
    def choices(cls) -> list[tuple[int, str]]:
        """The pairs that a Django field wants."""
        return [(member.value, member.name.lower()) for member in cls]


ENDED = (RunState.DONE, RunState.FAILED, RunState.SKIPPED, RunState.STOPPED)
"""States that nothing follows; "run again" makes a new run."""
