"""Purges take turns: what waits for a worker does not wait for the end of another purge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from moderation import tasks
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.purging import turns, worker
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.scheduling import clear_wakeup, due_purges, reserve_wakeups
from moderation.operations.purging.turns import Turn, does_another_wait
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps import claiming
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import run_to_end
from tests.moderation.scattered import Scattered, make_scattered


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of four steps, and turns that end after each of them if another purge waits."""
    claim = claiming.claim_steps
    monkeypatch.setattr(worker, "claim_steps", lambda purge_id, token: claim(purge_id, token=token, limit=4))
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)


@pytest.fixture
def two(mona: User) -> Iterator[tuple[Scattered, Scattered]]:
    """Two confirmed purges; the wake-ups of all others were received."""
    Purge.objects.update(wakeup_expires_at=None)
    yield make_scattered(mona), make_scattered(mona)
    Purge.objects.update(wakeup_expires_at=None)


@pytest.mark.usefixtures("small_groups")
def test_a_turn_ends_after_its_first_group_when_another_purge_waits(two: tuple[Scattered, Scattered]) -> None:
    first, second = two
    assert reserve_wakeups(second.purge.pk)
    turn = Turn(first.purge.pk)
    purge = run_purge(first.purge.pk, ends_turn=turn.ends)
    assert turn.has_ended
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.RUNNING, 20)


@pytest.mark.usefixtures("small_groups")
def test_what_has_begun_is_completed_and_the_rest_is_left_for_the_next_turn(
    two: tuple[Scattered, Scattered],
) -> None:
    first, second = two
    answers = iter([False, True])
    purge = run_purge(first.purge.pk, ends_turn=lambda: next(answers))
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.RUNNING, 40)
    states = list(purge.steps.order_by("ordinal").values_list("state", flat=True))
    assert states == [StepState.COUNTED] * 8 + [StepState.PENDING] * 4
    # The lock of a channel is kept until its last step has ended.
    locked = [lock_owner(channel.pk) is not None for channel in first.deleted]
    assert locked.count(True) <= 1
    assert first.purge.pk in due_purges()
    run_to_end(second.purge)
    second.assert_purged()
    run_to_end(first.purge)
    first.assert_purged()


@pytest.mark.usefixtures("small_groups")
def test_a_purge_with_none_waiting_behind_it_runs_to_its_end(two: tuple[Scattered, Scattered]) -> None:
    first, _ = two
    turn = Turn(first.purge.pk)
    run_purge(first.purge.pk, ends_turn=turn.ends)
    assert not turn.has_ended
    first.assert_purged()


@pytest.mark.usefixtures("small_groups")
def test_a_task_enqueues_the_next_turn_of_its_purge(
    two: tuple[Scattered, Scattered], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    enqueued: list[int] = []

    def delay(purge_id: int) -> object:
        enqueued.append(purge_id)
        return object()

    had_turns: list[int] = []

    def record(purge_id: int, **options: Any) -> Purge:
        had_turns.append(purge_id)
        return run_purge(purge_id, **options)

    monkeypatch.setattr(tasks.run_purge, "delay", delay)
    monkeypatch.setattr(worker, "run_purge", record)
    for purge in (first.purge, second.purge):
        assert reserve_wakeups(purge.pk)
    queue = [first.purge.pk, second.purge.pk]
    end = time.monotonic() + 60
    while queue and time.monotonic() < end:
        enqueued.clear()
        tasks.run_purge(queue.pop(0))
        # One for one, or each turn would multiply the queue.
        assert len(enqueued) <= 2
        queue += enqueued
    first.assert_purged()
    second.assert_purged()
    assert min(map(had_turns.count, (first.purge.pk, second.purge.pk))) > 1


def test_a_wakeup_that_was_received_ends_no_turn(two: tuple[Scattered, Scattered]) -> None:
    first, second = two
    assert reserve_wakeups(second.purge.pk)
    assert does_another_wait(first.purge.pk)
    assert not does_another_wait(second.purge.pk)
    clear_wakeup(second.purge.pk)
    assert not does_another_wait(first.purge.pk)


@pytest.mark.usefixtures("small_groups")
def test_a_group_that_always_fails_makes_progress_between_turns(two: tuple[Scattered, Scattered]) -> None:
    first, second = two
    step = Step.objects.get(purge=first.purge, ordinal=2)
    ids = bytes(step.ids)
    Step.objects.filter(purge=first.purge, ordinal=2).update(ids=b"not packed ids")
    assert reserve_wakeups(second.purge.pk)
    for _ in range(14):
        run_purge(first.purge.pk, idle_timeout_seconds=0, ends_turn=Turn(first.purge.pk).ends)
    assert totals_of(first.purge).deleted == first.messages - 5
    failing = Step.objects.get(purge=first.purge, ordinal=2)
    assert "unexpected error" in failing.wait_reason
    Step.objects.filter(purge=first.purge, ordinal=2).update(ids=ids, due_at=None)
    run_to_end(first.purge)
    first.assert_purged()


@pytest.mark.usefixtures("small_groups")
def test_a_purge_paused_at_the_end_of_a_turn_unlocks_its_channels(mona: User, two: tuple[Scattered, Scattered]) -> None:
    first, _ = two

    def pause() -> bool:
        pause_purge(first.purge.pk, moderator=mona)
        return True

    assert run_purge(first.purge.pk, ends_turn=pause).state == PurgeState.PAUSED
    assert {lock_owner(channel.pk) for channel in first.deleted} == {None}
