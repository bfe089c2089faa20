"""What a purge did with one message, and what an undo did: read off the sets of ids that their steps keep."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum

from moderation.domain.states import StepState


class Fate(StrEnum):
    """A purge's part in a message. left: its step was cancelled before anything was deleted."""

    WAITING = "waiting"
    DELETED = "deleted"
    ALREADY_GONE = "already_gone"
    FAILED = "failed"
    HELD = "held"
    LEFT = "left"


class Comeback(StrEnum):
    """An undo's part. left_out: it lived already or another purge stood for it, and nobody noted which."""

    ON_ITS_WAY = "on_its_way"
    RESTORED = "restored"
    WITHDRAWN = "withdrawn"
    STILL_PURGED = "still_purged"
    ALREADY_LIVE = "already_live"
    LEFT_OUT = "left_out"
    NOWHERE_KEPT = "nowhere_kept"
    FAILED = "failed"


def fate_in(message_id: int, *, state: str, gone: Container[int], failed: Container[int]) -> Fate:
    """What the removing step that holds the id did with it."""
    if state in _ENDED_BEFORE:
        return _ENDED_BEFORE[StepState(state)]
    if state != StepState.COUNTED:
        return Fate.WAITING
    if message_id in failed:
        return Fate.FAILED
    return Fate.ALREADY_GONE if message_id in gone else Fate.DELETED


_ENDED_BEFORE = {StepState.CANCELLED: Fate.LEFT, StepState.FAILED: Fate.FAILED, StepState.HELD: Fate.HELD}
"""What a step that ended before anything was deleted left its messages to."""


@dataclass(frozen=True, slots=True)
class UndoSets:
    """What a counted undo step keeps: the ids it wrote, those it left out, those that did not come back."""

    written: Container[int]
    left_out: Container[int]
    missing: Container[int]
    still_purged: int
    already_live: int
    failed: int


def comeback_in(message_id: int, sets: UndoSets, *, withdrawn: bool) -> Comeback | None:
    """What a counted undo step did with the id; None when it was not asked for it.

    withdrawn: whether its author took it back. Why an id was left out is kept as counts
    only, so it is known when one reason alone was counted.
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
