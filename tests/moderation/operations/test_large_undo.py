"""Undo, completion and unlocking are set-based, and no transaction has to do with more than some of many channels."""

import datetime as dt
import tracemalloc
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from chatstore.models import ChannelLock
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channels, release_channels
from moderation.domain.packing import pack_ids
from moderation.domain.states import PurgeState, StepState, UndoStepState
from moderation.models import AuditEntry, Purge, Step, Undo
from moderation.operations.access.audit import MAX_CHANNELS_AT_ONCE, record_purged
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.controls import cancel_purge, finish_purge, pause_purge, resume_purge, retry_purge
from moderation.operations.purging.opening import open_next_steps
from moderation.operations.purging.worker import has_due_steps, run_purge
from moderation.operations.steps import in_parts
from moderation.operations.steps.claiming import job_of
from moderation.operations.undo import requests
from moderation.operations.undo.requests import MAX_STEPS_AT_ONCE, UndoPart, request_undo
from tests.changed_audit_log import change_audit_log
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, run_to_end, write
from tests.moderation.many_steps import make_large_purge
from tests.moderation.scattered import make_scattered
from tests.moderation.stored_sums import store_sums

CHANNELS = 6_000
FIRST_CHANNEL = 7_000_000

MANY = f"""
INSERT INTO {Step._meta.db_table} (purge_id, ordinal, channel_id, bucket, kind, state, ids, count, deleted,
    already_gone, held, failed, strategy, wait_reason, error, quarantined_at, counted_at, gone_ids)
SELECT purge_id, ordinal + number, %s + number, bucket, kind, state, ids, count, count, 0, 0, 0, strategy, '', '',
    quarantined_at, counted_at, gone_ids
FROM {Step._meta.db_table}, generate_series(1, %s) AS number WHERE purge_id = %s AND ordinal = 1
"""
LOCKS = f"""
INSERT INTO {ChannelLock._meta.db_table} (channel_id, job, since)
SELECT %s + number, %s, clock_timestamp() FROM generate_series(1, %s) AS number ON CONFLICT DO NOTHING
"""


@pytest.fixture
def purge(mona: User) -> Iterator[Purge]:
    """Create a purge that deleted one message in each of many channels."""
    channel = make_channel()
    write(channel, old_ids(1))
    purge = purge_now(mona, everything(channel))
    with connection.cursor() as cursor:
        cursor.execute(MANY, (FIRST_CHANNEL, CHANNELS - 1, purge.pk))
    with transaction.atomic():
        while not record_purged(purge):
            pass
    store_sums()
    yield purge
    # No worker may continue it.
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.PAUSED)


def test_a_large_undo_is_requested_in_few_statements_and_little_memory(mona: User, purge: Purge) -> None:
    tracemalloc.start()
    try:
        with CaptureQueriesContext(connection) as captured:
            undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(captured) < 25
    assert peak < 1_000_000
    assert undo.expected == CHANNELS
    steps = undo.steps.order_by("ordinal")
    assert steps.count() == MAX_STEPS_AT_ONCE
    assert list(steps.values_list("ordinal", "channel_id")[1:3]) == [(2, FIRST_CHANNEL + 1), (3, FIRST_CHANNEL + 2)]
    assert set(steps.values_list("state", flat=True)) == {UndoStepState.PENDING}


def test_workers_create_the_other_steps_of_a_large_undo(mona: User, purge: Purge) -> None:
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    parts = 1
    while open_next_steps(purge.pk):
        parts += 1
    assert parts == CHANNELS // MAX_STEPS_AT_ONCE
    assert list(undo.steps.order_by("ordinal").values_list("ordinal", "channel_id")) == list(
        purge.steps.order_by("ordinal").values_list("ordinal", "channel_id")
    )
    undo.refresh_from_db()
    assert undo.steps_created_to is None


def test_an_undo_does_not_end_before_all_of_its_steps_were_created(mona: User, purge: Purge) -> None:
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    undo.steps.update(state=UndoStepState.COUNTED)
    assert advance_purge(purge.pk).state == PurgeState.UNDOING
    assert undo.steps.open().count() == MAX_STEPS_AT_ONCE
    assert has_due_steps(purge.pk)


def test_an_undo_in_parts_restores_everything(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_STEPS_AT_ONCE", 5)
    scattered = make_scattered(mona)
    run_to_end(scattered.purge)
    scattered.assert_purged()
    scattered.undo(mona)


def test_the_copies_that_could_be_restored_at_the_request_are_restored_later_too(mona: User, purge: Purge) -> None:
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    since = undo.requested_at - dt.timedelta(days=settings.QUARANTINE_DAYS)
    Purge.objects.filter(pk=purge.pk).update(quarantined_at=since + dt.timedelta(milliseconds=1))
    assert open_next_steps(purge.pk)
    assert undo.steps.count() == 2 * MAX_STEPS_AT_ONCE


def test_the_end_of_a_large_purge_is_recorded_once_for_each_channel_in_brief_transactions(
    purge: Purge, monkeypatch: pytest.MonkeyPatch
) -> None:
    reopened = purge.steps.latest("ordinal")
    change_audit_log("DELETE FROM moderation_auditentry WHERE purge_id = %s", purge.pk)
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.RUNNING, finished_at=None)
    with transaction.atomic():
        assert not record_purged(purge)
    # The worker was killed, and another one continues.
    entries = AuditEntry.objects.filter(purge=purge, action="channel_purged")
    assert entries.count() == MAX_CHANNELS_AT_ONCE
    assert advance_purge(purge.pk).state == PurgeState.DONE
    assert entries.count() == entries.values("channel_id").distinct().count() == CHANNELS
    # A retry of one step.
    purge.steps.filter(ordinal=reopened.ordinal).update(counted_at=ClockTimestamp())
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.RUNNING)
    assert advance_purge(purge.pk).state == PurgeState.DONE
    assert entries.count() == CHANNELS + 1
    assert entries.filter(channel_id=reopened.channel_id).count() == 2


def test_a_large_purge_that_was_paused_is_cancelled_and_recorded_before_its_undo_begins(
    mona: User, purge: Purge
) -> None:
    change_audit_log("DELETE FROM moderation_auditentry WHERE purge_id = %s", purge.pk)
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.PAUSED, finished_at=None)
    left = purge.steps.filter(ordinal__gt=CHANNELS - MAX_STEPS_AT_ONCE)
    left.update(state=StepState.PENDING, deleted=0, counted_at=None)
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert left.open().count() == MAX_STEPS_AT_ONCE
    while not undo.steps.exists():
        assert open_next_steps(purge.pk)
    assert not left.exclude(state=StepState.CANCELLED).exists()
    entries = AuditEntry.objects.filter(purge=purge, action="channel_purged")
    recorded = CHANNELS - MAX_STEPS_AT_ONCE
    assert entries.count() == entries.values("channel_id").distinct().count() == recorded
    assert undo.steps.count() == MAX_STEPS_AT_ONCE


def test_the_steps_of_an_undo_in_unlocked_channels_do_not_wait_for_a_locked_one(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_STEPS_AT_ONCE", 2)
    scattered = make_scattered(mona)
    run_to_end(scattered.purge)
    undo = request_undo(scattered.purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    locked = undo.steps.earliest("ordinal").channel_id
    lock_channels([locked], job="import:7")
    try:
        run_purge(scattered.purge.pk, idle_timeout_seconds=0, wait_for_channel=False)
        assert set(undo.steps.open().values_list("channel_id", flat=True)) == {locked}
    finally:
        release_channels([locked], job="import:7")
    run_to_end(scattered.purge)
    scattered.assert_undone()


def test_a_cancelled_purge_that_is_finished_is_reopened_in_parts(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "MAX_STEPS_AT_ONCE", 5)
    scattered = make_scattered(mona)
    purge = scattered.purge
    cancel_purge(purge.pk, moderator=mona)
    assert run_purge(purge.pk).state == PurgeState.CANCELLED
    finish_purge(purge.pk, moderator=mona)
    opened = purge.steps.open()
    assert opened.count() == 5
    cancel_purge(purge.pk, moderator=mona)
    assert run_purge(purge.pk).state == PurgeState.CANCELLED
    assert not opened.exists()
    finish_purge(purge.pk, moderator=mona)
    run_to_end(purge)
    scattered.assert_purged()


def test_failed_steps_are_retried_in_parts(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "MAX_STEPS_AT_ONCE", 5)
    monkeypatch.setattr(in_parts, "MAX_SPLITS_AT_ONCE", 4)
    purge = make_large_purge(mona, counted=6, pending=12, state=PurgeState.DONE_WITH_FAILURES)
    steps, opened = purge.steps, purge.steps.open()
    steps.filter(state=StepState.COUNTED).update(failed=1, failed_ids=steps.values("ids")[:1])
    opened.update(state=StepState.FAILED, failed=1, counted_at=ClockTimestamp())
    sizes = []
    retry_purge(purge.pk, moderator=mona)
    sizes.append(opened.count())
    while open_next_steps(purge.pk):
        sizes.append(opened.count())
    # First the six that failed in part, whose failed messages become steps of their own.
    assert sizes == [4, 8, 13, 18]
    assert not steps.filter(failed__gt=0).exists()
    assert not steps.filter(state=StepState.FAILED).exists()
    assert opened.filter(ordinal__gte=18).count() == 6


def test_a_paused_purge_does_not_end_before_all_of_its_steps_were_reopened(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "MAX_STEPS_AT_ONCE", 5)
    purge = make_large_purge(mona, counted=0, pending=12, state=PurgeState.CANCELLED)
    purge.steps.update(state=StepState.CANCELLED)
    finish_purge(purge.pk, moderator=mona)
    opened = purge.steps.open()
    opened.update(state=StepState.FAILED, failed=1)
    pause_purge(purge.pk, moderator=mona)
    assert advance_purge(purge.pk).state == PurgeState.PAUSED
    resume_purge(purge.pk, moderator=mona)
    assert open_next_steps(purge.pk)
    assert opened.count() == 5
    opened.update(state=StepState.FAILED, failed=1)
    # The worker that ends its turn here leaves the last ones to the next turn.
    assert advance_purge(purge.pk).state == PurgeState.QUEUED
    assert opened.count() == 2
    opened.update(state=StepState.FAILED, failed=1)
    assert advance_purge(purge.pk).state == PurgeState.DONE_WITH_FAILURES


def test_a_large_undo_completes_and_unlocks_every_channel_in_few_statements(mona: User, purge: Purge) -> None:
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    Undo.objects.filter(pk=undo.pk).update(steps_created_to=None)
    purge.steps.update(undone_ids=pack_ids(old_ids(1)))
    undo.steps.update(state=UndoStepState.COUNTED)
    with connection.cursor() as cursor:
        cursor.execute(LOCKS, (FIRST_CHANNEL, job_of(purge.pk), CHANNELS - 1))
    with CaptureQueriesContext(connection) as settled:
        assert advance_purge(purge.pk).state == PurgeState.UNDONE
    assert len(settled) < 25
    assert not ChannelLock.objects.filter(job=job_of(purge.pk)).exists()


def test_a_purge_with_one_message_left_is_partly_undone(mona: User, purge: Purge) -> None:
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    Undo.objects.filter(pk=undo.pk).update(steps_created_to=None)
    purge.steps.exclude(ordinal=9).update(undone_ids=pack_ids(old_ids(1)))
    undo.steps.update(state=UndoStepState.COUNTED)
    assert advance_purge(purge.pk).state == PurgeState.PARTLY_UNDONE
