"""Small steps are processed in groups: one statement for many, and each step still on its own."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import ms_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination import clock
from chatstore.operations.ledger.refresh import try_refresh_bucket
from chatstore.operations.repair_status.repair_clock import RepairIsLate
from chatstore.store import cassandra, figures, scans
from chatstore.store.messages import insert_message
from moderation.domain.states import PurgeState, StepState
from moderation.models import AuditEntry, Hold, Purge, Step
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.purging import worker
from moderation.operations.purging.controls import pause_purge, resume_purge
from moderation.operations.purging.quarantine import QuarantinedStep
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps import claiming
from moderation.operations.steps.claiming import StepLost, claim_steps, release_claims
from moderation.operations.steps.split import split_step
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.store import deletes
from moderation.store.pace import Pace
from tests.conftest import make_user
from tests.moderation.channels import (
    WILMA,
    choose,
    claim,
    confirm,
    everything,
    ids_of,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.scattered import Scattered, make_scattered
from tests.moderation.steps import finish_step, quarantine_step, stamp_step


def place_on(user: User, channel: Channel, message_id: int) -> Hold:
    request = HoldRequest(message=f"https://chat.example/channels/{channel.pk}/{message_id}")
    return place_hold(request, reason="court order", actor=user)


def make_written_channel() -> Channel:
    """Return a channel of 20 messages in each of two buckets."""
    channel = make_channel()
    write(channel, [*old_ids(20, buckets_ago=4), *old_ids(20, buckets_ago=3)])
    return channel


def refresh_bucket_of(channel: Channel, ids: Sequence[int]) -> None:
    """Count the bucket's tombstones, as a preview or the nightly job does."""
    assert try_refresh_bucket(channel.pk, bucket_of(ids[0]), job="test") is not None


def test_small_steps_of_many_channels_are_claimed_together(mona: User) -> None:
    scattered = make_scattered(mona)
    claimed = claim_steps(scattered.purge.pk, token=uuid.uuid4())
    assert [step.ordinal for step in claimed] == list(range(1, 13))
    assert claim_steps(scattered.purge.pk, token=uuid.uuid4()) == []


def test_the_number_of_statements_does_not_depend_on_the_number_of_steps(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The state of a purge and the clock are checked from time to time, which a busy machine does more often.
    monkeypatch.setattr(claiming, "STATE_CHECK_SECONDS", 3_600)
    monkeypatch.setattr(clock, "CLOCK_CHECK_INTERVAL_SECONDS", 3_600)
    clock.check_clock()
    few, many = make_scattered(mona, channels=2, buckets=2), make_scattered(mona, channels=4, buckets=4)
    numbers: list[tuple[int, int]] = []
    for scattered in (few, many):
        with CaptureQueriesContext(connection) as purging:
            run_to_end(scattered.purge)
        request_undo(scattered.purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
        with CaptureQueriesContext(connection) as undoing:
            run_to_end(scattered.purge)
        numbers.append((len(purging), len(undoing)))
    assert numbers[0] == numbers[1]


@pytest.fixture(params=[5, 120], ids=["by row", "by range"])
def twelve_steps(request: pytest.FixtureRequest, mona: User) -> Scattered:
    """A purge of twelve steps of one kind."""
    return make_scattered(mona, each=request.param)


def test_a_purge_in_groups_and_its_undo_are_exact(twelve_steps: Scattered, mona: User) -> None:
    run_to_end(twelve_steps.purge)
    twelve_steps.assert_purged()
    twelve_steps.undo(mona)


def test_a_hold_on_one_step_of_a_group_keeps_that_message_only(
    twelve_steps: Scattered, mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = next(iter(twelve_steps.deleted.items()))
    placed: list[Hold] = []

    def place_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        if not placed:
            placed.append(place_on(mona, channel, ids[7]))
        return stamp_steps(quarantined)

    monkeypatch.setattr(worker, "stamp_steps", place_and_stamp)
    purge = run_to_end(twelve_steps.purge)
    total = totals_of(purge)
    assert (purge.state, total.held, total.deleted) == (PurgeState.DONE_WITH_FAILURES, 1, twelve_steps.messages - 1)
    assert ids_of(channel, *twelve_steps.buckets(channel)) == sorted([*twelve_steps.kept[channel], ids[7]])
    assert twelve_steps.gone == twelve_steps.messages - 1


def test_steps_of_a_group_that_another_worker_took_over_are_left_to_it(
    twelve_steps: Scattered, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, taken = twelve_steps.purge.steps.all(), (2, 5, 12)
    messages_of_taken = sum(steps.filter(ordinal__in=taken).values_list("count", flat=True))

    def lose_some_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        steps.filter(ordinal__in=taken).update(token=uuid.uuid4(), state=StepState.QUARANTINING)
        return stamp_steps(quarantined)

    with monkeypatch.context() as patched:
        patched.setattr(worker, "stamp_steps", lose_some_and_stamp)
        run_purge(twelve_steps.purge.pk, idle_timeout_seconds=0)
    assert sorted(steps.exclude(state=StepState.COUNTED).values_list("ordinal", flat=True)) == list(taken)
    left = twelve_steps.messages - messages_of_taken
    assert twelve_steps.gone == totals_of(twelve_steps.purge).deleted == left
    steps.update(lease_until="2020-01-01T00:00:00Z")
    run_to_end(twelve_steps.purge)
    twelve_steps.assert_purged()


def test_a_step_that_cannot_be_processed_does_not_keep_its_group_from_it(twelve_steps: Scattered) -> None:
    steps = twelve_steps.purge.steps.filter(ordinal=6)
    step = steps.get()
    steps.update(ids=b"not packed ids")
    waiting = run_purge(twelve_steps.purge.pk, idle_timeout_seconds=0)
    left = twelve_steps.messages - step.count
    assert (waiting.state, totals_of(waiting).deleted) == (PurgeState.WAITING, left)
    assert "unexpected error" in waiting.wait_reason
    steps.update(ids=bytes(step.ids), due_at=None)
    run_to_end(twelve_steps.purge)
    twelve_steps.assert_purged()


def test_a_group_whose_deletes_failed_half_way_is_completed(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered = make_scattered(mona)
    failures: list[int] = []

    def fail_half_way(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]], *, pace: Pace) -> None:
        every = list(rows)
        if len(every) > 1:
            failures.append(len(every))
            deletes_in(every[: len(every) // 2], pace=pace)
            raise StoreUnavailable("a replica is down")
        deletes_in(every, pace=pace)

    deletes_in = deletes.delete_rows_in
    monkeypatch.setattr(deletes, "delete_rows_in", fail_half_way)
    run_to_end(scattered.purge)
    assert failures == [12]
    scattered.assert_purged()


def test_an_undo_whose_writes_failed_half_way_is_completed(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered = make_scattered(mona)
    run_to_end(scattered.purge)
    send = cassandra.execute_batch_jobs
    failures: list[int] = []

    def fail_half_way(jobs: Iterable[tuple[str, Sequence[cassandra.Params]]], **named: object) -> int:
        every = list(jobs)
        if len(every) == 12 and not failures:
            failures.append(len(every))
            send(every[:6], **named)  # type: ignore[arg-type]
            raise StoreUnavailable("a replica is down")
        return send(every, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cassandra, "execute_batch_jobs", fail_half_way)
    scattered.undo(mona)
    assert failures == [12]


def test_a_pause_during_the_deletes_of_a_group_is_exact(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered = make_scattered(mona)
    send = deletes.delete_rows_in

    def pause_after_the_third(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]], *, pace: Pace) -> None:
        def until_paused() -> Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]]:
            for number, one in enumerate(rows):
                if number == 3:
                    pause_purge(scattered.purge.pk, moderator=mona)
                yield one

        send(until_paused(), pace=pace)

    monkeypatch.setattr(deletes, "delete_rows_in", pause_after_the_third)
    monkeypatch.setattr("moderation.operations.steps.claiming.STATE_CHECK_SECONDS", 0)
    paused = run_purge(scattered.purge.pk)
    monkeypatch.undo()
    total = totals_of(paused)
    assert paused.state == PurgeState.PAUSED
    assert 15 <= total.deleted < scattered.messages
    assert total.deleted + total.left == scattered.messages
    assert scattered.gone == total.deleted
    resume_purge(paused.pk, moderator=mona)
    run_to_end(paused)
    scattered.assert_purged()


def test_a_worker_that_lost_its_step_splits_nothing_off(mona: User) -> None:
    channel, ids = make_channel(), old_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    hold = place_on(mona, channel, ids[3])
    late = claim(purge)
    kept = quarantine_step(late, pace=Pace(10_000))
    purge.steps.update(lease_until="2020-01-01T00:00:00Z")
    lift_hold(hold.pk, actor=make_user("ada", group="admins"), reason="The case is closed")
    assert run_to_end(purge).state == PurgeState.DONE
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.RUNNING)
    with pytest.raises(StepLost):
        stamp_step(late, kept)
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.DONE)
    assert purge.steps.count() == 1
    assert (totals_of(purge).deleted, totals_of(purge).held) == (20, 0)
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_no_claim_is_left_when_a_group_fails_after_a_step_was_held(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered = make_scattered(mona)
    channel = min(scattered.deleted, key=lambda one: one.pk)
    for message_id in scattered.deleted[channel][:5]:
        place_on(mona, channel, message_id)

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("a replica is down")

    with monkeypatch.context() as patched:
        patched.setattr(deletes, "delete_rows_in", fail)
        waiting = run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.WAITING
    assert not Step.objects.filter(purge=scattered.purge, token__isnull=False).exists()
    purge = run_to_end(scattered.purge)
    total = totals_of(purge)
    assert (purge.state, total.held, total.deleted) == (PurgeState.DONE_WITH_FAILURES, 5, scattered.messages - 5)


def test_the_audit_counts_what_a_hold_kept_and_what_a_pause_left(mona: User) -> None:
    channel, ids = make_channel(), old_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    place_on(mona, channel, ids[3])
    run_to_end(purge)
    entry = AuditEntry.objects.get(purge=purge, action="channel_purged")
    assert (entry.details["deleted"], entry.details["held"]) == (19, 1)
    paused = confirm(mona, preview(mona, everything(make_written_channel())))
    step = claim(paused)
    kept = quarantine_step(step, pace=Pace(10_000))
    stamp_step(step, kept)
    finish_step(step, pace=Pace(10_000), quarantined=kept)
    pause_purge(paused.pk, moderator=mona)
    request_undo(paused.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    entry = AuditEntry.objects.get(purge=paused, action="channel_purged")
    assert (entry.details["steps"], entry.details["deleted"]) == (1, 20)


def test_tombstones_of_a_bucket_with_several_steps_are_counted(mona: User) -> None:
    channel, ids = make_channel(), old_ids(20)
    write(channel, ids)
    refresh_bucket_of(channel, ids)
    alone = purge_now(mona, choose(channel.pk, message_ids=ids[:5]))
    figure = figures.read_figures(channel.pk)[bucket_of(ids[0])]["tombstones"]
    assert (alone.state, figure.source, figure.value) == (PurgeState.DONE, "purge estimate", 5)
    purge = confirm(mona, preview(mona, choose(channel.pk, message_ids=ids[5:10])))
    split_step(claim(purge), ids[8:10])
    purge.steps.update(token=None, lease_until=None, state=StepState.PENDING)
    run_to_end(purge)
    figure = figures.read_figures(channel.pk)[bucket_of(ids[0])]["tombstones"]
    assert (figure.source, figure.value) == ("purge", 10)


def test_steps_that_still_wait_some_time_after_their_group_failed_are_grouped_again(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered = make_scattered(mona)

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("a replica is down")

    with monkeypatch.context() as patched:
        patched.setattr(deletes, "delete_rows_in", fail)
        run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    scattered.purge.steps.update(due_at=timezone.now(), state=StepState.PENDING)
    assert len(claim_steps(scattered.purge.pk, token=uuid.uuid4())) == 1
    scattered.purge.steps.update(
        due_at=timezone.now() - dt.timedelta(seconds=31), token=None, lease_until=None, state=StepState.PENDING
    )
    token = uuid.uuid4()
    steps = claim_steps(scattered.purge.pk, token=token)
    assert len(steps) == 12
    release_claims(steps, token=token)
    run_to_end(scattered.purge)
    scattered.assert_purged()


def test_a_failure_that_concerns_every_step_leaves_them_grouped(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered = make_scattered(mona)
    checked: list[int] = []

    def late() -> None:
        checked.append(1)
        raise RepairIsLate("The last repair was too long ago.")

    with monkeypatch.context() as patched:
        patched.setattr(worker, "check_repaired", late)
        waiting = run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert (waiting.state, len(checked)) == (PurgeState.WAITING, 1)
    assert "repair" in waiting.wait_reason
    assert set(scattered.purge.steps.values_list("due_at", "token")) == {(None, None)}
    assert len(claim_steps(scattered.purge.pk, token=uuid.uuid4())) == 12


@pytest.mark.parametrize(("channels", "buckets"), [(2, 6), (6, 2), (1, 1)])
def test_statements_for_several_buckets_return_what_each_bucket_contains(
    mona: User, channels: int, buckets: int
) -> None:
    scattered = make_scattered(mona, channels=channels, buckets=buckets)
    by_bucket: dict[BucketKey, list[int]] = {}
    for channel, ids in scattered.deleted.items():
        for message_id in ids:
            by_bucket.setdefault((channel.pk, bucket_of(message_id)), []).append(message_id)
    rows = {key: [row[0] for row in page] for key, page in scans.read_rows_with_writetime_in(by_bucket)}
    assert {key: sorted(found) for key, found in rows.items()} == by_bucket
    assert scans.read_live_ids_in(by_bucket) == {key: set(ids) for key, ids in by_bucket.items()}
    whole: dict[BucketKey, list[int]] = {}
    for key, page in scans.read_ids_in(by_bucket):
        whole.setdefault(key, []).extend(message_id for message_id, _ in page)
    names = {channel.pk: channel for channel in scattered.kept}
    assert {key: found[::-1] for key, found in whole.items()} == {key: ids_of(names[key[0]], key[1]) for key in whole}
    assert whole.keys() == by_bucket.keys()


def test_live_ids_are_found_in_a_bucket_that_is_read_as_a_whole() -> None:
    channel, ids = make_channel(), old_ids(150)
    write(channel, ids[:120])
    key = (channel.pk, bucket_of(ids[0]))
    assert scans.read_live_ids_in({key: ids[20:]}) == {key: set(ids[20:120])}


def test_deletes_that_were_begun_are_sent_when_the_purge_is_stopped(mona: User) -> None:
    scattered = make_scattered(mona, channels=1, buckets=3)
    ((channel, ids),) = scattered.deleted.items()

    def until_stopped() -> Iterator[tuple[BucketKey, Sequence[tuple[int, int]]]]:
        for message_id in ids[:7]:
            yield (channel.pk, bucket_of(message_id)), [(message_id, ms_of(message_id) * 1_000)]
        raise StepLost("paused")

    with pytest.raises(StepLost):
        deletes.delete_rows_in(until_stopped(), pace=Pace(10_000))
    left = sorted([*scattered.kept[channel], *ids[7:]])
    assert ids_of(channel, *scattered.buckets(channel)) == left


def test_a_bucket_with_many_rows_is_deleted_beside_small_ones(mona: User) -> None:
    channel = make_channel()
    many, few = old_ids(250, buckets_ago=4), old_ids(3, buckets_ago=3)
    write(channel, [*many, *few])
    chunks = [[(message_id, ms_of(message_id) * 1_000) for message_id in ids] for ids in (few, many)]
    rows = [((channel.pk, bucket_of(chunk[0][0])), chunk) for chunk in chunks]
    deletes.delete_rows_in(rows, pace=Pace(10_000))
    assert ids_of(channel, bucket_of(many[0]), bucket_of(few[0])) == []


def test_messages_that_reappear_are_found_where_several_buckets_are_verified_together(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered = make_scattered(mona)
    for channel in scattered.deleted:
        for bucket in scattered.buckets(channel):
            assert try_refresh_bucket(channel.pk, bucket, job="test") is not None
    send = deletes.delete_rows_in
    channel, ids = next(iter(scattered.deleted.items()))

    def delete_and_write_again(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]], *, pace: Pace) -> None:
        send(rows, pace=pace)
        monkeypatch.setattr(deletes, "delete_rows_in", send)
        message = Message(channel_id=channel.pk, message_id=ids[0], author_id=WILMA, content="late")
        insert_message(message, stamp_us=clock.stamp_now_us())

    monkeypatch.setattr(deletes, "delete_rows_in", delete_and_write_again)
    run_to_end(scattered.purge)
    total = totals_of(Purge.objects.get(pk=scattered.purge.pk))
    assert (total.deleted, total.failed) == (scattered.messages, 0)
    assert ids_of(channel, *scattered.buckets(channel)) == scattered.kept[channel]
