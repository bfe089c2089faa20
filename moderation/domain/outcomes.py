"""Outcome of a purge or an undo for one message, derived from the sets of ids stored on their steps."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum

from moderation.domain.states import StepState


class Fate(StrEnum):
    """Outcome of a purge for one message. LEFT: the step was cancelled before anything was deleted."""

    WAITING = "waiting"
    DELETED = "deleted"
    ALREADY_GONE = "already_gone"
    FAILED = "failed"
    HELD = "held"
    LEFT = "left"


class Comeback(StrEnum):
    """Outcome of an undo for one message.

    LEFT_OUT: the message was already there or is deleted by another purge; which of the two was not recorded.
    """

    ON_ITS_WAY = "on_its_way"
    RESTORED = "restored"
    WITHDRAWN = "withdrawn"
    STILL_PURGED = "still_purged"
    ALREADY_LIVE = "already_live"
    LEFT_OUT = "left_out"
    NOWHERE_KEPT = "nowhere_kept"
    FAILED = "failed"


def fate_in(message_id: int, *, state: str, gone: Container[int], failed: Container[int]) -> Fate:
    """Return the outcome for an id of a deleting step."""
    if state in _ENDED_BEFORE:
        return _ENDED_BEFORE[StepState(state)]
    if state != StepState.COUNTED:
        return Fate.WAITING
    if message_id in failed:
        return Fate.FAILED
    return Fate.ALREADY_GONE if message_id in gone else Fate.DELETED


_ENDED_BEFORE = {StepState.CANCELLED: Fate.LEFT, StepState.FAILED: Fate.FAILED, StepState.HELD: Fate.HELD}
"""Outcome of every message of a step that ended before anything was deleted."""


@dataclass(frozen=True, slots=True)
class UndoSets:
    """Ids stored on a counted undo step: restored, skipped, and not restored."""

    written: Container[int]
    left_out: Container[int]
    missing: Container[int]
    still_purged: int
    already_live: int
    failed: int


def comeback_in(message_id: int, sets: UndoSets, *, withdrawn: bool) -> Comeback | None:
    """Return the outcome of a counted undo step for an id, or None if the undo did not include it.

    withdrawn: the message's author has withdrawn it. The reason for skipping an id is stored only as a count per
    reason, so it is known only if the step counted a single reason.
    """
    if message_id in sets.missing:
        return Comeback.FAILED if sets.failed else Comeback.NOWHERE_KEPT
    if message_id in sets.written:
        return Comeback.WITHDRAWN if withdrawn else Comeback.RESTORED
    if message_id not in sets.left_out:
        return None
    if withdrawn:
        return Comeback.WITHDRAWN
    if sets.still_purged and sets.already_live:
        return Comeback.LEFT_OUT
    return Comeback.STILL_PURGED if sets.still_purged else Comeback.ALREADY_LIVE
