"""Purges take turns: what waits for a worker does not wait for the end of another purge."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from moderation import tasks
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.purging import opening, turns, worker
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.scheduling import clear_wakeup, due_purges, joinable_purges, reserve_wakeup
from moderation.operations.purging.turns import Turn, does_another_wait, does_any_purge_wait
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps import claiming
from moderation.operations.steps.claiming import claim_steps
from moderation.operations.steps.totals import totals_of
from moderation.store import active_workers
from tests.moderation.channels import run_to_end
from tests.moderation.scattered import Scattered, make_scattered


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of four steps, and turns that end after each of them if another purge waits."""
    claim = claiming.claim_steps
    monkeypatch.setattr(opening, "claim_steps", lambda purge_id, token: claim(purge_id, token=token, limit=4))
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)


@pytest.fixture
def two(mona: User, only_own_purges_wait: None) -> tuple[Scattered, Scattered]:
    """Two confirmed purges; the wake-ups of all others were received."""
    return make_scattered(mona), make_scattered(mona)


@pytest.mark.usefixtures("small_groups")
def test_a_turn_ends_after_its_first_group_when_another_purge_waits(two: tuple[Scattered, Scattered]) -> None:
    first, second = two
    assert reserve_wakeup(second.purge.pk)
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
        assert reserve_wakeup(purge.pk)
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
    assert reserve_wakeup(second.purge.pk)
    assert does_another_wait(first.purge.pk)
    assert not does_another_wait(second.purge.pk)
    clear_wakeup(second.purge.pk)
    assert not does_another_wait(first.purge.pk)


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[str | int]:
    """Return the list of purges for which `run_purge` was enqueued, and "join" for each `join_purge`."""
    enqueued: list[str | int] = []

    def delay(purge_id: int) -> object:
        enqueued.append(purge_id)
        return object()

    monkeypatch.setattr(tasks.run_purge, "delay", delay)
    monkeypatch.setattr(tasks.join_purge, "apply_async", lambda **_: enqueued.append("join"))
    active_workers.clear_join()
    return enqueued


@pytest.mark.usefixtures("small_groups")
def test_one_idle_worker_is_invited_while_steps_are_left(
    two: tuple[Scattered, Scattered], enqueued: list[str | int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    monkeypatch.setattr(tasks, "INVITATION_SECONDS", 0)
    for scattered in (first, second):
        tasks.run_purge(scattered.purge.pk)
        scattered.assert_purged()
    # Purges of three groups: both could use another worker twice.
    assert enqueued == ["join"]


def test_nobody_is_invited_to_a_purge_whose_steps_are_all_claimed(
    two: tuple[Scattered, Scattered], enqueued: list[str | int]
) -> None:
    tasks.run_purge(two[0].purge.pk)
    two[0].assert_purged()
    assert enqueued == []


@pytest.mark.usefixtures("small_groups")
def test_an_invited_worker_takes_a_purge_that_waits_before_it_joins_one(
    two: tuple[Scattered, Scattered], enqueued: list[str | int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    joined: list[int] = []

    def record(purge_id: int) -> None:
        joined.append(purge_id)

    monkeypatch.setattr(tasks, "_run_turn", record)
    claim_steps(first.purge.pk, token=uuid.uuid4(), limit=4)
    assert reserve_wakeup(second.purge.pk)
    tasks.join_purge()
    assert joined == [second.purge.pk]
    # Other tests have left running purges, which are joined in turn.
    others = set(joinable_purges().values_list("pk", flat=True)) - {second.purge.pk}
    assert first.purge.pk in others
    tasks.join_purge()
    assert joined[1] in others


@pytest.mark.usefixtures("small_groups")
def test_a_worker_that_leaves_a_purge_to_another_worker_does_not_make_it_wait(
    two: tuple[Scattered, Scattered], enqueued: list[str | int]
) -> None:
    first, second = two
    token = uuid.uuid4()
    claim_steps(first.purge.pk, token=token, limit=4)
    assert reserve_wakeup(second.purge.pk)
    tasks._run_turn(first.purge.pk)
    assert first.purge.pk not in enqueued
    assert not does_another_wait(second.purge.pk)
    Step.objects.filter(token=token).update(state="pending", token=None, lease_until=None)
    tasks._run_turn(first.purge.pk)
    assert first.purge.pk in enqueued
    assert does_another_wait(second.purge.pk)


@pytest.mark.slow
def test_a_purge_whose_wakeup_was_lost_is_processed_after_the_next_poll(
    two: tuple[Scattered, Scattered], enqueued: list[str | int]
) -> None:
    first, _ = two
    tasks.enqueue_workers(first.purge.pk)
    # The broker lost the task; the purge still waits for its turn.
    enqueued.clear()
    tasks.poll_due_purges()
    assert "join" in enqueued
    assert first.purge.pk not in enqueued
    while does_any_purge_wait():
        tasks.join_purge()
    first.assert_purged()


@pytest.mark.usefixtures("small_groups")
def test_a_group_that_always_fails_makes_progress_between_turns(two: tuple[Scattered, Scattered]) -> None:
    first, second = two
    step = Step.objects.get(purge=first.purge, ordinal=2)
    ids = bytes(step.ids)
    Step.objects.filter(purge=first.purge, ordinal=2).update(ids=b"not packed ids")
    assert reserve_wakeup(second.purge.pk)
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
