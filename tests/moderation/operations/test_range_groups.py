"""Steps that delete small buckets by range are processed in groups too, and each step is still on its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

import pytest
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.models.users import User
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging import execution, worker
from moderation.operations.purging.controls import pause_purge, resume_purge
from moderation.operations.purging.quarantine import QuarantinedStep
from moderation.operations.purging.rewrite import rewrite_survivors
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import claim_steps
from moderation.operations.steps.totals import totals_of
from moderation.store import deletes
from moderation.store.pace import Pace
from tests.moderation.channels import choose, confirm, ids_of, make_channel, old_ids, preview, run_to_end, write
from tests.moderation.scattered import Scattered, make_scattered

EACH = 120
"""Messages of a step: too many to delete by row."""


@pytest.fixture
def scattered(mona: User) -> Scattered:
    """A purge of twelve steps, each by range."""
    made = make_scattered(mona, each=EACH)
    assert set(made.purge.steps.values_list("kind", "count")) == {(StepKind.RANGES, EACH)}
    return made


def gone_from(scattered: Scattered) -> int:
    """Return the number of messages that are no longer in the store."""
    left = sum(len(ids_of(channel, *scattered.buckets(channel))) for channel in scattered.kept)
    return scattered.messages + sum(map(len, scattered.kept.values())) - left


def test_they_are_claimed_together(scattered: Scattered) -> None:
    claimed = claim_steps(scattered.purge.pk, token=uuid.uuid4())
    assert [step.ordinal for step in claimed] == list(range(1, 13))


def test_a_purge_in_groups_and_its_undo_are_exact(scattered: Scattered, mona: User) -> None:
    run_to_end(scattered.purge)
    scattered.assert_purged()
    scattered.undo(mona)


def test_a_bucket_with_many_messages_to_keep_is_processed_alone(mona: User) -> None:
    channel = make_channel()
    for ago in (5, 4, 3):
        ids = old_ids(700 if ago == 4 else 160, buckets_ago=ago)
        write(channel, ids[:EACH], author=71)
        write(channel, ids[EACH:], author=72)
    purge = confirm(mona, preview(mona, choose(channel.pk, author_ids=(71,))))
    groups = [len(claim_steps(purge.pk, token=uuid.uuid4())) for _ in range(2)]
    assert groups == [2, 1]


def test_steps_by_row_and_by_range_are_not_in_one_group(mona: User) -> None:
    channel = make_channel()
    for ago, count in ((6, 20), (5, EACH), (4, 20), (3, EACH)):
        write(channel, old_ids(count, buckets_ago=ago), author=71)
    purge = confirm(mona, preview(mona, choose(channel.pk, author_ids=(71,))))
    claimed = [claim_steps(purge.pk, token=uuid.uuid4()) for _ in range(2)]
    assert [len(group) for group in claimed] == [2, 2]
    assert all(len({step.kind for step in group if isinstance(step, Step)}) == 1 for group in claimed)


def test_a_hold_on_a_message_of_one_step_keeps_this_message_only(
    scattered: Scattered, mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = next(iter(scattered.deleted.items()))
    placed: list[int] = []

    def place_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        if not placed:
            request = HoldRequest(message=f"https://chat.example/channels/{channel.pk}/{ids[7]}")
            placed.append(place_hold(request, reason="court order", actor=mona).pk)
        return stamp_steps(quarantined)

    monkeypatch.setattr(worker, "stamp_steps", place_and_stamp)
    purge = run_to_end(scattered.purge)
    total = totals_of(purge)
    assert (purge.state, total.held, total.deleted) == (PurgeState.DONE_WITH_FAILURES, 1, scattered.messages - 1)
    assert ids_of(channel, *scattered.buckets(channel)) == sorted([*scattered.kept[channel], ids[7]])
    assert gone_from(scattered) == scattered.messages - 1


def test_steps_that_another_worker_took_over_are_left_to_it(
    scattered: Scattered, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, taken = Step.objects.filter(purge=scattered.purge), (2, 5, 12)

    def lose_some_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        steps.filter(ordinal__in=taken).update(token=uuid.uuid4(), state=StepState.QUARANTINING)
        return stamp_steps(quarantined)

    with monkeypatch.context() as patched:
        patched.setattr(worker, "stamp_steps", lose_some_and_stamp)
        run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert sorted(steps.exclude(state=StepState.COUNTED).values_list("ordinal", flat=True)) == list(taken)
    assert gone_from(scattered) == totals_of(scattered.purge).deleted == scattered.messages - 3 * EACH
    steps.update(lease_until="2020-01-01T00:00:00Z")
    run_to_end(scattered.purge)
    scattered.assert_purged()


def test_a_group_whose_deletes_failed_half_way_is_completed(
    scattered: Scattered, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, calls = deletes.delete_ranges, 0

    def fail_once(channel_id: int, bucket: int, ranges: Sequence[tuple[int, int]], *, stamp: int, pace: Pace) -> None:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise StoreUnavailable("a replica is down")
        send(channel_id, bucket, ranges, stamp=stamp, pace=pace)

    monkeypatch.setattr(deletes, "delete_ranges", fail_once)
    waiting = run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert totals_of(waiting).deleted <= gone_from(scattered)
    run_to_end(scattered.purge)
    scattered.assert_purged()


def test_a_step_that_cannot_be_processed_does_not_keep_its_group_from_it(scattered: Scattered) -> None:
    step = Step.objects.get(purge=scattered.purge, ordinal=6)
    ids = bytes(step.ids)
    Step.objects.filter(purge=scattered.purge, ordinal=6).update(ids=b"not packed ids")
    waiting = run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert (waiting.state, totals_of(waiting).deleted) == (PurgeState.WAITING, scattered.messages - EACH)
    Step.objects.filter(purge=scattered.purge, ordinal=6).update(ids=ids, due_at=None)
    run_to_end(scattered.purge)
    scattered.assert_purged()


def test_a_pause_while_kept_messages_are_rewritten_is_exact(
    mona: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the five ranges of a bucket only one is within the budget: the four messages inside it are rewritten.
    settings.PURGE_TOMBSTONE_BUDGET = 3
    scattered = make_scattered(mona, each=EACH)
    rewritten = 0

    def pause_at_the_third(step: Step, pace: Pace, *, check: Callable[[], None], **named: object) -> None:
        nonlocal rewritten
        rewritten += 1
        if rewritten == 3:
            pause_purge(scattered.purge.pk, moderator=mona)
        rewrite_survivors(step, pace, check=check, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "rewrite_survivors", pause_at_the_third)
    monkeypatch.setattr("moderation.operations.steps.claiming.STATE_CHECK_SECONDS", 0)
    paused = run_purge(scattered.purge.pk)
    monkeypatch.undo()
    total = totals_of(paused)
    assert paused.state == PurgeState.PAUSED
    # No delete of the group was sent, so all of it starts over.
    assert total.deleted == gone_from(scattered) == 0
    assert set(scattered.purge.steps.values_list("state", flat=True)) == {StepState.PENDING}
    resume_purge(paused.pk, moderator=mona)
    purge = run_to_end(Purge.objects.get(pk=paused.pk))
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, scattered.messages)
    for channel, kept in scattered.kept.items():
        assert ids_of(channel, *scattered.buckets(channel)) == kept
