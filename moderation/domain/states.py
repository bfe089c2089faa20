"""The states of purges and steps, and the moves between them; a move not listed does not exist."""

from __future__ import annotations

from enum import StrEnum


class _Choices(StrEnum):
    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """The pairs that a Django field wants."""
        return [(member.value, member.value.replace("_", " ")) for member in cls]


class PurgeState(_Choices):
    """A purge's life: chosen, scanned, confirmed, run."""

    DRAFT = "draft"
    SCANNING = "scanning"
    READY = "ready"
    NOTHING_MATCHED = "nothing_matched"
    EXPIRED = "expired"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    DONE = "done"
    DONE_WITH_FAILURES = "done_with_failures"
    UNDOING = "undoing"
    UNDONE = "undone"
    PARTLY_UNDONE = "partly_undone"
    UNDO_EXPIRED = "undo_expired"
    ERASING = "erasing"
    ERASED = "erased"


class ErasureAnswer(_Choices):
    """What became of somebody's wish to erase what a purge keeps. none: nobody has answered yet.

    held: it was approved, and a hold came before anything was deleted.
    """

    NONE = ""
    APPROVED = "approved"
    REFUSED = "refused"
    HELD = "held"


class StepKind(_Choices):
    """rows: one by one, at once. spans: older ids, by ranges. later: those that wait for their hour.

    rewrite: nothing goes; a bucket that was left over its budget is brought back into it.
    undo: what another step removed comes back.
    """

    ROWS = "rows"
    SPANS = "spans"
    LATER = "later"
    REWRITE = "rewrite"
    UNDO = "undo"


REMOVING = (StepKind.ROWS, StepKind.SPANS, StepKind.LATER)
"""Kinds of the steps that a manifest is parted into."""


class StepState(_Choices):
    """A step's life. Before *stamped* it can go back to pending; from there it only goes forward."""

    PENDING = "pending"
    QUARANTINING = "quarantining"
    QUARANTINED = "quarantined"
    STAMPED = "stamped"
    REWRITTEN = "rewritten"
    DELETED = "deleted"
    VERIFIED = "verified"
    CLOSED = "closed"
    COUNTED = "counted"
    HELD = "held"
    CANCELLED = "cancelled"
    FAILED = "failed"


PURGE_MOVES: dict[PurgeState, frozenset[PurgeState]] = {
    PurgeState.DRAFT: frozenset({PurgeState.SCANNING, PurgeState.EXPIRED}),
    PurgeState.SCANNING: frozenset({PurgeState.READY, PurgeState.NOTHING_MATCHED, PurgeState.EXPIRED}),
    # Nothing matched any more: all of it was unticked.
    PurgeState.READY: frozenset({PurgeState.QUEUED, PurgeState.EXPIRED, PurgeState.NOTHING_MATCHED}),
    PurgeState.QUEUED: frozenset({PurgeState.RUNNING, PurgeState.WAITING, PurgeState.PAUSED, PurgeState.CANCELLING}),
    PurgeState.RUNNING: frozenset(
        {
            PurgeState.WAITING,
            PurgeState.PAUSED,
            PurgeState.CANCELLING,
            PurgeState.DONE,
            PurgeState.DONE_WITH_FAILURES,
        }
    ),
    PurgeState.WAITING: frozenset({PurgeState.RUNNING, PurgeState.PAUSED, PurgeState.CANCELLING}),
    # Paused when its last step was stamped already, it is done all the same. Taken back, it is cancelled first.
    PurgeState.PAUSED: frozenset(
        {
            PurgeState.QUEUED,
            PurgeState.CANCELLING,
            PurgeState.DONE,
            PurgeState.DONE_WITH_FAILURES,
            PurgeState.UNDOING,
        }
    ),
    # Cancelled when its last step was stamped already, likewise.
    PurgeState.CANCELLING: frozenset({PurgeState.CANCELLED, PurgeState.DONE, PurgeState.DONE_WITH_FAILURES}),
    PurgeState.CANCELLED: frozenset(
        {PurgeState.QUEUED, PurgeState.UNDOING, PurgeState.UNDO_EXPIRED, PurgeState.ERASING}
    ),
    PurgeState.DONE: frozenset({PurgeState.UNDOING, PurgeState.UNDO_EXPIRED, PurgeState.ERASING}),
    PurgeState.DONE_WITH_FAILURES: frozenset(
        {PurgeState.QUEUED, PurgeState.UNDOING, PurgeState.UNDO_EXPIRED, PurgeState.ERASING}
    ),
    PurgeState.PARTLY_UNDONE: frozenset({PurgeState.UNDOING, PurgeState.UNDO_EXPIRED, PurgeState.ERASING}),
    PurgeState.UNDOING: frozenset({PurgeState.UNDONE, PurgeState.PARTLY_UNDONE}),
    PurgeState.UNDONE: frozenset({PurgeState.ERASING}),
    # Back to what it was, where a hold came before anything was deleted.
    PurgeState.ERASING: frozenset(
        {
            PurgeState.ERASED,
            PurgeState.CANCELLED,
            PurgeState.DONE,
            PurgeState.DONE_WITH_FAILURES,
            PurgeState.PARTLY_UNDONE,
            PurgeState.UNDONE,
        }
    ),
}
"""Who may follow whom; the states that are missing are final."""

ACTIVE_PURGES = frozenset(
    {
        PurgeState.QUEUED,
        PurgeState.RUNNING,
        PurgeState.WAITING,
        PurgeState.PAUSED,
        PurgeState.CANCELLING,
        PurgeState.UNDOING,
    }
)
"""Purges that the scheduler keeps an eye on."""

CAN_BE_UNDONE = frozenset(state for state, after in PURGE_MOVES.items() if PurgeState.UNDOING in after)
"""Purges of which something may be taken back."""

CAN_BE_ERASED = frozenset(state for state, after in PURGE_MOVES.items() if PurgeState.ERASING in after)
"""Purges that may keep something, and at which nobody is at work."""

KEEPS_NOTHING = frozenset({PurgeState.ERASING, PurgeState.ERASED})
"""Purges whose copies are nobody's to read any more."""

BEFORE_STAMPED = (StepState.PENDING, StepState.QUARANTINING, StepState.QUARANTINED)
"""States in which nothing was deleted and a step may be taken back."""

BETWEEN_STAMPED_AND_COUNTED = (
    StepState.STAMPED,
    StepState.REWRITTEN,
    StepState.DELETED,
    StepState.VERIFIED,
    StepState.CLOSED,
)
"""States in which the channel must not be given to another job."""

FINAL_STEPS = (StepState.COUNTED, StepState.HELD, StepState.CANCELLED, StepState.FAILED)
"""States that nothing follows."""
