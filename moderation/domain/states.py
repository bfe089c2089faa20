"""States of purges and steps, and the transitions between them. Transitions that are not listed are not allowed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class _Choices(StrEnum):
    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """Return the pairs for a Django field."""
        return [(member.value, member.value.replace("_", " ")) for member in cls]


class PurgeState(_Choices):
    """Lifecycle of a purge: drafted, scanned, confirmed, run."""

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


class ErasureDecision(_Choices):
    """Decision on a request to erase a purge's copies. NONE: not decided yet.

    HELD: approved, but a hold was placed before anything was deleted.
    """

    NONE = ""
    APPROVED = "approved"
    REJECTED = "rejected"
    HELD = "held"


class ApprovalDecision(_Choices):
    """Decision on a request to confirm a purge above a limit. NONE: not decided yet.

    WITHDRAWN: by the requester. CLOSED: the purge was confirmed without it, or its preview was changed or discarded.
    """

    NONE = ""
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    CLOSED = "closed"


class StepKind(_Choices):
    """Kind of a step.

    ROWS: deletes one by one, immediately. RANGES: deletes older ids by ranges. LATER: deferred until all ids are over
    an hour old. REWRITE: deletes no messages; brings a bucket that was left over its budget back into it.
    """

    ROWS = "rows"
    RANGES = "ranges"
    LATER = "later"
    REWRITE = "rewrite"


DELETING = (StepKind.ROWS, StepKind.RANGES, StepKind.LATER)
"""Kinds of the steps that a manifest is split into."""


class StepState(_Choices):
    """Lifecycle of a step of a purge. Before *stamped* it can go back to pending; from there it only moves forward."""

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


class UndoStepState(_Choices):
    """Lifecycle of a step of an undo. Before *stamped* it can go back to pending; from there it only moves forward.

    It cannot be cancelled, and messages that it cannot restore are counted on it, so it always ends as *counted*.
    """

    PENDING = "pending"
    PLANNING = "planning"
    STAMPED = "stamped"
    RESTORED = "restored"
    VERIFIED = "verified"
    CLOSED = "closed"
    COUNTED = "counted"


PURGE_MOVES: dict[PurgeState, frozenset[PurgeState]] = {
    PurgeState.DRAFT: frozenset({PurgeState.SCANNING, PurgeState.EXPIRED}),
    PurgeState.SCANNING: frozenset({PurgeState.READY, PurgeState.NOTHING_MATCHED, PurgeState.EXPIRED}),
    # Nothing matches any more once all messages are excluded.
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
    # A purge paused after its last step was stamped still completes. An undo cancels the rest first.
    PurgeState.PAUSED: frozenset(
        {
            PurgeState.QUEUED,
            PurgeState.CANCELLING,
            PurgeState.DONE,
            PurgeState.DONE_WITH_FAILURES,
            PurgeState.UNDOING,
        }
    ),
    # A purge cancelled after its last step was stamped still completes.
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
    # Back to the previous state if a hold was placed before anything was deleted.
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
"""Allowed transitions. States that are missing are final."""

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
"""Purges that beat polls."""

UNFINISHED_PURGES = ACTIVE_PURGES | {PurgeState.DRAFT, PurgeState.SCANNING, PurgeState.READY, PurgeState.ERASING}
"""Purges for which a person or a worker has something left to do: few, while the others are kept for years."""

CAN_BE_UNDONE = frozenset(state for state, after in PURGE_MOVES.items() if PurgeState.UNDOING in after)
"""Purges of which something may be restored."""

EXPIRES_FROM = tuple(sorted(state.value for state, after in PURGE_MOVES.items() if PurgeState.UNDO_EXPIRED in after))
"""Purges whose undo period ends, in the order of an index's condition."""

CAN_BE_ERASED = frozenset(state for state, after in PURGE_MOVES.items() if PurgeState.ERASING in after)
"""Purges that may have copies and that no worker processes."""

WITHOUT_COPIES = frozenset({PurgeState.ERASING, PurgeState.ERASED})
"""Purges whose copies must not be read any more."""


@dataclass(frozen=True, slots=True)
class StateGroups:
    """States of one kind of step, grouped by what may be done with a step whose worker is gone.

    before_stamped: nothing was written, so it starts over. partly_applied: its statements may have been sent, so it
    must be completed, and its channel must stay locked until then. final: nothing.
    """

    before_stamped: tuple[str, ...]
    partly_applied: tuple[str, ...]
    final: tuple[str, ...]

    @property
    def pending(self) -> str:
        """State of a step that has not begun."""
        return self.before_stamped[0]


STEP_STATES = StateGroups(
    before_stamped=(StepState.PENDING, StepState.QUARANTINING, StepState.QUARANTINED),
    partly_applied=(
        StepState.STAMPED,
        StepState.REWRITTEN,
        StepState.DELETED,
        StepState.VERIFIED,
        StepState.CLOSED,
    ),
    final=(StepState.COUNTED, StepState.HELD, StepState.CANCELLED, StepState.FAILED),
)

UNDO_STEP_STATES = StateGroups(
    before_stamped=(UndoStepState.PENDING, UndoStepState.PLANNING),
    partly_applied=(UndoStepState.STAMPED, UndoStepState.RESTORED, UndoStepState.VERIFIED, UndoStepState.CLOSED),
    final=(UndoStepState.COUNTED,),
)
