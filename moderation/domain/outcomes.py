"""Outcome of a purge or an undo for one message, derived from the sets of ids stored on their steps."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum

from moderation.domain.states import StepState


class PurgeOutcome(StrEnum):
    """Outcome of a purge for one message. LEFT: the step was cancelled before anything was deleted."""

    WAITING = "waiting"
    DELETED = "deleted"
    ALREADY_GONE = "already_gone"
    FAILED = "failed"
    HELD = "held"
    LEFT = "left"


class DeletionStatus(StrEnum):
    """What charts and lists tell apart, in the order of a bar's parts from the top. The pages have a color for each.

    KEPT: there, and not to be deleted: because of a hold, or since the purge was cancelled or discarded.
    """

    TO_DELETE = "to-delete"
    DELETED = "deleted"
    RESTORED = "restored"
    FAILED = "failed"
    KEPT = "kept"


class RestoreOutcome(StrEnum):
    """Outcome of an undo for one message.

    LEFT_OUT: the message was already live or is deleted by another purge; which of the two was not recorded.
    """

    IN_PROGRESS = "in_progress"
    RESTORED = "restored"
    WITHDRAWN = "withdrawn"
    STILL_PURGED = "still_purged"
    ALREADY_LIVE = "already_live"
    LEFT_OUT = "left_out"
    NO_COPY = "no_copy"
    FAILED = "failed"


def purge_outcome(message_id: int, *, state: str, gone: Container[int], failed: Container[int]) -> PurgeOutcome:
    """Return the outcome for an id of a deleting step."""
    if state in _FINAL_OUTCOMES:
        return _FINAL_OUTCOMES[StepState(state)]
    if state != StepState.COUNTED:
        return PurgeOutcome.WAITING
    if message_id in failed:
        return PurgeOutcome.FAILED
    return PurgeOutcome.ALREADY_GONE if message_id in gone else PurgeOutcome.DELETED


def status_of_step(state: str) -> DeletionStatus:
    """Return the status of the ids of a deleting step, but for those that failed or were restored."""
    if state == StepState.COUNTED:
        return DeletionStatus.DELETED
    if state == StepState.FAILED:
        return DeletionStatus.FAILED
    return DeletionStatus.KEPT if state in _FINAL_OUTCOMES else DeletionStatus.TO_DELETE


_FINAL_OUTCOMES = {
    StepState.CANCELLED: PurgeOutcome.LEFT,
    StepState.FAILED: PurgeOutcome.FAILED,
    StepState.HELD: PurgeOutcome.HELD,
}
"""Outcome of every message of a step that ended before anything was deleted."""


@dataclass(frozen=True, slots=True)
class UndoIds:
    """Ids stored on a counted undo step: restored, skipped, and not restored."""

    written: Container[int]
    left_out: Container[int]
    missing: Container[int]
    still_purged: int
    already_live: int
    failed: int


def restore_outcome(message_id: int, sets: UndoIds, *, withdrawn: bool) -> RestoreOutcome | None:
    """Return the outcome of a counted undo step for an id, or None if the undo did not include it.

    withdrawn: the message's author has withdrawn it. The reason for skipping an id is stored only as a count per
    reason, so it is known only if the step counted a single reason.
    """
    if message_id in sets.missing:
        return RestoreOutcome.FAILED if sets.failed else RestoreOutcome.NO_COPY
    if message_id in sets.written:
        return RestoreOutcome.WITHDRAWN if withdrawn else RestoreOutcome.RESTORED
    if message_id not in sets.left_out:
        return None
    if withdrawn:
        return RestoreOutcome.WITHDRAWN
    if sets.still_purged and sets.already_live:
        return RestoreOutcome.LEFT_OUT
    return RestoreOutcome.STILL_PURGED if sets.still_purged else RestoreOutcome.ALREADY_LIVE
