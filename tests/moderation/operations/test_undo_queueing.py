"""Workers claim the steps of an undo like those of a purge: by lease and in order."""

import datetime as dt
import uuid

import pytest
from pytest_django import Settings

from chatstore.models import Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, UndoStepState
from moderation.models import Undo
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.failures import failures_of
from moderation.operations.purging.scheduling import can_be_joined, due_purges
from moderation.operations.purging.stuck_check import STUCK_PURGE, check_stuck_purges
from moderation.operations.steps.claiming import renewed_leases, requeue_step
from moderation.operations.steps.open_steps import open_steps
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    claim,
    claim_undo,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.stored_sums import store_sums
from tests.waiting import wait_until

EXPIRED = "2020-01-01T00:00:00Z"


@pytest.fixture
def undo(mona: User) -> Undo:
    """Request the undo of a purge of three steps."""
    channel = make_channel()
    for buckets_ago in (3, 4, 5):
        write(channel, old_ids(5, buckets_ago=buckets_ago))
    purge = purge_now(mona, everything(channel))
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    undo.purge.refresh_from_db()
    return undo


def test_an_undo_is_due_while_no_worker_processes_it(undo: Undo) -> None:
    assert undo.purge_id in due_purges()
    claimed = claim_undo(undo.purge)
    assert undo.purge_id not in due_purges()
    undo.steps.filter(token=claimed.token).update(lease_until=EXPIRED)
    assert undo.purge_id in due_purges()


def test_idle_workers_join_an_undo_until_each_step_is_claimed(undo: Undo) -> None:
    for _ in range(3):
        assert can_be_joined(undo.purge_id)
        claim_undo(undo.purge)
    assert not can_be_joined(undo.purge_id)


def test_a_delayed_step_of_an_undo_comes_after_the_others(undo: Undo) -> None:
    requeue_step(claim_undo(undo.purge), due_in=0, reason="its replicas are away")
    assert [claim_undo(undo.purge).ordinal for _ in range(3)] == [2, 3, 1]


def test_a_step_abandoned_before_its_timestamp_is_stored_starts_over(undo: Undo) -> None:
    for abandoned_in, resumed_in in (
        (UndoStepState.PLANNING, UndoStepState.PENDING),
        (UndoStepState.STAMPED, UndoStepState.STAMPED),
        (UndoStepState.CLOSED, UndoStepState.CLOSED),
    ):
        step = claim_undo(undo.purge)
        undo.steps.filter(ordinal=step.ordinal).update(state=abandoned_in, lease_until=EXPIRED)
        assert (taken_over := claim_undo(undo.purge)).state == resumed_in
        assert (taken_over.ordinal, taken_over.token == step.token) == (step.ordinal, False)


def test_a_worker_renews_its_leases_on_the_steps_of_an_undo(undo: Undo, settings: Settings) -> None:
    settings.PURGE_LEASE_RENEW_SECONDS = 0.05
    step = claim_undo(undo.purge)
    soon = postgres_now() + dt.timedelta(seconds=1)
    undo.steps.filter(ordinal=step.ordinal).update(lease_until=soon)
    with renewed_leases(step.token or uuid.uuid4()):
        wait_until(lambda: undo.steps.filter(ordinal=step.ordinal, lease_until__gt=soon).exists())


def test_an_undo_that_makes_no_progress_is_reported(undo: Undo) -> None:
    now = postgres_now()

    def is_reported(minutes: int) -> bool:
        check_stuck_purges(now + dt.timedelta(minutes=minutes))
        return Finding.objects.filter(kind=STUCK_PURGE, subject=str(undo.purge_id), closed_at=None).exists()

    assert (is_reported(0), is_reported(31)) == (False, True)
    undo.steps.filter(ordinal=1).update(state=UndoStepState.RESTORED)
    assert not is_reported(32)


def test_failures_of_the_purge_and_of_the_undo_are_listed_by_bucket(undo: Undo) -> None:
    undo.purge.steps.filter(ordinal=1).update(failed=1, error="written again")
    undo.steps.filter(ordinal__in=(1, 2)).update(failed=2, error="2 could not be restored")
    failures = failures_of(undo.purge)
    assert [(one.count, one.of_undo) for one in failures.shown] == [(1, False), (2, True), (2, True)]
    assert [one.bucket for one in failures.shown] == sorted(one.bucket for one in failures.shown)
    assert failures.others == 0


def test_only_the_steps_of_the_undo_are_open_while_a_paused_purge_is_undone(mona: User) -> None:
    channel = make_channel()
    for buckets_ago in (3, 4):
        write(channel, old_ids(150, buckets_ago=buckets_ago))
    purge = confirm(mona, preview(mona, everything(channel)))
    step = claim(purge)
    purge.steps.filter(ordinal=step.ordinal).update(state="counted", token=None, lease_until=None, deleted=150)
    pause_purge(purge.pk, moderator=mona)
    purge.steps.filter(ordinal=step.ordinal).update(quarantined_at=postgres_now())
    store_sums()
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    purge.refresh_from_db()
    assert not purge.steps.open().exists()
    assert [one.pk for one in open_steps(purge)] == [(undo.pk, step.ordinal)]
    assert run_to_end(purge).state != PurgeState.UNDOING
    assert not open_steps(purge).exists()
