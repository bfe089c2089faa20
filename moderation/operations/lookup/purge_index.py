"""Purges that included a message, found by its id alone, with their outcome and that of their undos.

A step's ids are packed, so they are unpacked only if its bucket, its first and last id and its sketch allow for the
message. The store is not read.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from zstandard import ZstdError

from chatstore.domain.buckets import bucket_of
from moderation.domain.outcomes import PurgeOutcome, RestoreOutcome, UndoIds, purge_outcome, restore_outcome
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING, StepState, UndoStepState
from moderation.models import Purge, Step, Undo, UndoStep
from moderation.operations.steps.searching import STEPS_AT_ONCE, may_be_in_step
from moderation.operations.undo.requests import UndoPart

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UndoResult:
    """Outcome of one undo for the message. undo: None if an import restored it."""

    undo: Undo | None
    outcome: RestoreOutcome
    at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class PurgePart:
    """Outcome of one purge for the message. at: when it was counted.

    is_in_effect: the message is deleted because of it. undo_results: outcomes of the purge's undos for the message,
    newest first. is_visible: whether the viewer may see the purge itself.
    """

    purge: Purge
    ordinal: int
    channel_id: int
    outcome: PurgeOutcome
    at: dt.datetime | None
    error: str
    is_in_effect: bool
    undo_results: Sequence[UndoResult]
    is_visible: bool = True


def steps_that_may_contain(message_id: int, *, channel_id: int | None = None) -> QuerySet[Step]:
    """Return the deleting steps of confirmed purges whose ids must be searched for a message."""
    steps = Step.objects.filter(
        may_be_in_step(message_id),
        bucket=bucket_of(message_id),
        kind__in=DELETING,
        purge__confirmed_at__isnull=False,
    )
    return steps if channel_id is None else steps.filter(channel_id=channel_id)


def find_parts(message_id: int, *, channel_id: int | None = None, withdrawn: bool = False) -> list[PurgePart]:
    """Return each purge that included the message, the last confirmed first.

    withdrawn: the message's author has withdrawn it, which explains why an undo skipped it. Three queries for any
    number of purges.
    """
    found = _steps_containing(message_id, channel_id)
    steps = (
        list(Step.objects.filter(_any_of(found)).select_related("purge__moderator").defer("sketch")) if found else []
    )
    undos = _undo_steps(steps)
    parts = [_part_of(message_id, step, undos, withdrawn=withdrawn) for step in steps]
    parts.sort(key=lambda part: (part.purge.confirmed_at, part.ordinal), reverse=True)
    return parts


def _steps_containing(message_id: int, channel_id: int | None) -> list[tuple[int, int]]:
    """Return (purge id, ordinal) of the steps that contain the id."""
    candidates = steps_that_may_contain(message_id, channel_id=channel_id).values_list("purge_id", "ordinal", "ids")
    return [
        (purge_id, ordinal)
        for purge_id, ordinal, packed in candidates.iterator(chunk_size=STEPS_AT_ONCE)
        if _contains(packed, message_id, purge_id=purge_id, ordinal=ordinal)
    ]


def _contains(packed: bytes | memoryview, message_id: int, *, purge_id: int, ordinal: int) -> bool:
    try:
        return message_id in unpack_ids(packed)
    except (ValueError, ZstdError):
        # One corrupt step must not hide the outcomes of all others.
        logger.exception("the ids of step %s of purge %s cannot be read", ordinal, purge_id)
        return False


def _any_of(keys: Iterable[tuple[int, int]]) -> Q:
    wanted = Q()
    for purge_id, ordinal in keys:
        wanted |= Q(purge_id=purge_id, ordinal=ordinal)
    return wanted


def _undo_steps(steps: Sequence[Step]) -> Mapping[tuple[int, int], list[UndoStep]]:
    """Return the undo steps of some steps, by purge and ordinal, newest first."""
    by_source: dict[tuple[int, int], list[UndoStep]] = {(step.purge_id, step.ordinal): [] for step in steps}
    if any(step.undone_ids is not None or step.state == StepState.COUNTED for step in steps):
        undos = UndoStep.objects.filter(_any_of(by_source)).select_related("undo__moderator")
        for undo_step in undos.order_by("-undo_id"):
            by_source[undo_step.purge_id, undo_step.ordinal].append(undo_step)
    return by_source


def _part_of(
    message_id: int, step: Step, undos: Mapping[tuple[int, int], list[UndoStep]], *, withdrawn: bool
) -> PurgePart:
    outcome = purge_outcome(
        message_id, state=step.state, gone=unpack_ids(step.gone_ids), failed=unpack_ids(step.failed_ids)
    )
    undone = message_id in unpack_ids(step.undone_ids)
    undo_results = list(_results_of(message_id, undos[step.purge_id, step.ordinal], withdrawn=withdrawn))
    if undone and not undo_results:
        undo_results.append(UndoResult(None, RestoreOutcome.RESTORED, None))
    return PurgePart(
        purge=step.purge,
        ordinal=step.ordinal,
        channel_id=step.channel_id,
        outcome=outcome,
        at=step.counted_at,
        error=step.error,
        is_in_effect=outcome in (PurgeOutcome.DELETED, PurgeOutcome.ALREADY_GONE) and not undone,
        undo_results=undo_results,
    )


def _results_of(message_id: int, undo_steps: Iterable[UndoStep], *, withdrawn: bool) -> Iterator[UndoResult]:
    for step in undo_steps:
        if step.state == UndoStepState.COUNTED:
            outcome = restore_outcome(message_id, _sets_of(step), withdrawn=withdrawn)
        else:
            outcome = RestoreOutcome.IN_PROGRESS if _is_requested(message_id, step) else None
        if outcome is not None:
            yield UndoResult(step.undo, outcome, step.counted_at)


def _sets_of(step: UndoStep) -> UndoIds:
    return UndoIds(
        written=unpack_ids(step.restore_ids),
        left_out=unpack_ids(step.skipped_ids),
        missing=unpack_ids(step.failed_ids),
        still_purged=step.still_purged,
        already_live=step.already_live,
        failed=step.failed,
    )


def _is_requested(message_id: int, step: UndoStep) -> bool:
    """Return whether an undo that is not counted yet includes the message, as far as the ids show."""
    part = UndoPart.from_json(step.undo.part)
    return message_id in part.message_ids if part.message_ids else not part.author_ids
