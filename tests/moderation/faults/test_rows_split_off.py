"""A worker is killed right after it split off the rows whose deletes it had not sent, because the purge was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.packing import unpack_ids
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging import execution
from moderation.operations.purging.controls import cancel_purge, pause_purge, resume_purge
from moderation.operations.steps import claiming
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.store import deletes
from moderation.store.pace import Pace
from tests.moderation.channels import claim, confirm, everything, ids_of, old_ids, preview, run_to_end, write
from tests.moderation.steps import finish_step, quarantine_step, stamp_step

MESSAGES = 20
SENT = 10

Stop = Callable[..., Purge]


class KilledError(BaseException):
    """Ends a worker where it is, as `kill -9` does."""


@pytest.fixture
def ids(channel: Channel) -> list[int]:
    written = old_ids(MESSAGES)
    write(channel, written)
    return written


def stop_and_kill(mona: User, channel: Channel, stop: Stop, monkeypatch: pytest.MonkeyPatch) -> Purge:
    """Stop a purge after half of its deletes, and kill its worker before the step's next transition."""
    purge = confirm(mona, preview(mona, everything(channel)))
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(10_000))
    stamp_step(step, kept)
    send, move = deletes.delete_rows_in, claiming.move_steps

    def stop_half_way(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]], *, pace: Pace) -> None:
        def until_stopped() -> Iterator[tuple[BucketKey, Sequence[tuple[int, int]]]]:
            yield next(iter(rows))
            stop(purge.pk, moderator=mona)
            yield from rows

        send(until_stopped(), pace=pace)

    def die_before_deleted(steps: Sequence[Step], to: StepState, **named: object) -> list[Step]:
        if to is StepState.DELETED:
            raise KilledError
        return move(steps, to, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(claiming, "STATE_CHECK_SECONDS", 0)
        patched.setattr(execution, "ROWS_PER_CHECK", SENT)
        patched.setattr(deletes, "delete_rows_in", stop_half_way)
        patched.setattr(execution, "move_steps", die_before_deleted)
        with pytest.raises(KilledError):
            finish_step(step, pace=Pace(10_000), quarantined=kept)
    purge.steps.filter(lease_until__isnull=False).update(lease_until="2020-01-01T00:00:00Z")
    return purge


def test_the_worker_that_takes_over_keeps_them_if_the_purge_was_cancelled(
    mona: User, channel: Channel, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = run_to_end(stop_and_kill(mona, channel, cancel_purge, monkeypatch))
    total = totals_of(purge)
    assert (purge.state, total.deleted, total.left) == (PurgeState.CANCELLED, SENT, MESSAGES - SENT)
    kept = unpack_ids(purge.steps.get(state=StepState.CANCELLED).ids)
    assert ids_of(channel, bucket_of(ids[0])) == list(kept)
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.UNDONE
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_hold_that_is_placed_then_keeps_them(
    mona: User, channel: Channel, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = stop_and_kill(mona, channel, pause_purge, monkeypatch)
    left = list(unpack_ids(purge.steps.get(state=StepState.PENDING).ids))
    place_hold(HoldRequest(channel=str(channel.pk)), reason="court order", actor=mona)
    run_to_end(purge)
    resume_purge(purge.pk, moderator=mona)
    purge = run_to_end(purge)
    total = totals_of(purge)
    assert (purge.state, total.deleted, total.held) == (PurgeState.DONE_WITH_FAILURES, SENT, MESSAGES - SENT)
    assert ids_of(channel, bucket_of(ids[0])) == left
