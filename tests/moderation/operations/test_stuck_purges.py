"""A purge that could continue but makes no progress for half an hour is reported until one of its steps advances."""

from __future__ import annotations

import datetime as dt

import pytest

from chatstore.models import Finding
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.purging.stuck_check import STUCK_PURGE, check_stuck_purges
from tests.moderation.channels import by_victor, confirm, make_channel, old_ids, preview, run_to_end, write

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def purge(mona: User) -> Purge:
    """Confirm a purge that no worker takes."""
    channel = make_channel()
    write(channel, [*old_ids(6), *old_ids(6, buckets_ago=5)])
    return confirm(mona, preview(mona, by_victor(channel)))


@pytest.fixture(autouse=True)
def _clean_up() -> None:
    Finding.objects.filter(kind=STUCK_PURGE).delete()


def open_one(purge: Purge) -> Finding | None:
    return Finding.objects.filter(kind=STUCK_PURGE, subject=str(purge.pk), closed_at=None).first()


def check_after(purge: Purge, minutes: int) -> Finding | None:
    """Run the check now and again `minutes` later."""
    now = postgres_now()
    check_stuck_purges(now)
    assert open_one(purge) is None
    check_stuck_purges(now + minutes * MINUTE)
    return open_one(purge)


def test_half_an_hour_without_progress_is_reported_once(purge: Purge) -> None:
    assert check_after(purge, 29) is None
    found = check_after(purge, 31)
    assert found is not None
    assert found.summary.startswith(f"Purge {purge.pk} by mona")
    assert "has made no progress for " in found.summary
    check_stuck_purges(postgres_now() + 40 * MINUTE)
    again = open_one(purge)
    assert again is not None
    assert again.pk == found.pk


def test_progress_of_a_step_closes_the_finding(purge: Purge) -> None:
    assert check_after(purge, 31) is not None
    purge.steps.filter(ordinal=purge.steps.order_by("ordinal")[0].ordinal).update(state=StepState.STAMPED)
    check_stuck_purges(postgres_now() + 32 * MINUTE)
    assert open_one(purge) is None


def test_repeated_attempts_are_not_progress(purge: Purge) -> None:
    now = postgres_now()
    check_stuck_purges(now)
    purge.steps.update(state=StepState.QUARANTINING)
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.RUNNING)
    check_stuck_purges(now + 31 * MINUTE)
    assert open_one(purge) is not None


def test_a_finished_purge_is_no_longer_stuck(purge: Purge) -> None:
    assert check_after(purge, 31) is not None
    run_to_end(purge)
    check_stuck_purges(postgres_now() + 60 * MINUTE)
    assert open_one(purge) is None


def test_a_purge_that_waits_for_its_due_time_is_not_stuck(purge: Purge) -> None:
    purge.steps.update(due_at=postgres_now() + 120 * MINUTE)
    assert check_after(purge, 60) is None


def test_a_purge_blocked_by_another_job_is_not_stuck(purge: Purge) -> None:
    channel_id = purge.steps.order_by("ordinal")[0].channel_id
    assert lock_channel(channel_id, job="import:a-test", lease_seconds=7_200)
    assert check_after(purge, 60) is None


def test_a_paused_purge_is_not_stuck(purge: Purge, mona: User) -> None:
    pause_purge(purge.pk, moderator=mona)
    assert check_after(purge, 60) is None


def test_a_scan_without_a_worker_is_stuck(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    drafted = draft_purge(moderator=mona, selection=by_victor(channel))
    assert check_after(drafted, 31) is not None
