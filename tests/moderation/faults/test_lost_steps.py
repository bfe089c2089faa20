"""A worker that was given up resumes, or leaves behind an unexpected state."""

import time
import uuid

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import UNKNOWN
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.store import ledger, messages
from chatstore.store.loads import clear_live_at
from chatstore.store.reading.reader import read_page
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.states import PurgeState, StepState, UndoStepState
from moderation.models import AuditEntry, Purge, Step
from moderation.operations.preview import bucket_reads
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.controls import cancel_purge, pause_purge, resume_purge
from moderation.operations.purging.scheduling import due_purges
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import StepLost, move_step, requeue_step
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.store.pace import Pace
from tests.moderation.channels import (
    VICTOR,
    claim,
    claim_undo,
    confirm,
    everything,
    ids_of,
    old_ids,
    preview,
    purge_now,
    write,
)
from tests.moderation.steps import claim_step, finish_step, quarantine_step, restore_step, stamp_step

TAKEOVER_STATES = (StepState.STAMPED, StepState.REWRITTEN, StepState.DELETED, StepState.VERIFIED)


def take_to(step: Step, state: StepState) -> None:
    """Advance a claimed step by hand, like a worker that sends no more statements."""
    stamp_step(step, quarantine_step(step, pace=Pace(1_000)))
    for after in TAKEOVER_STATES[1 : TAKEOVER_STATES.index(state) + 1]:
        move_step(step, after)


def paused_after_its_last_stamp(mona: User, channel: Channel) -> Purge:
    """Pause a purge whose only step is stamped, and end the step: nothing is left to delete."""
    write(channel, old_ids(20))
    purge = confirm(mona, preview(mona, everything(channel)))
    step = claim(purge)
    take_to(step, StepState.STAMPED)
    pause_purge(purge.id, moderator=mona)
    finish_step(step, pace=Pace(1_000))
    return purge


def expire_lease(purge: Purge) -> None:
    Step.objects.filter(purge_id=purge.id, lease_until__isnull=False).update(lease_until="2020-01-01T00:00:00Z")


def outlive_lease(mona: User, channel: Channel, ids: list[int], state: StepState) -> tuple[Purge, Step]:
    """Let a worker lose its step in a state to one that ends the purge; return the purge, and the step as it was."""
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    late = claim(purge)
    take_to(late, state)
    expire_lease(purge)
    assert run_purge(purge.id).state == PurgeState.DONE
    return purge, late


@pytest.mark.parametrize("state", TAKEOVER_STATES)
def test_a_worker_that_resumes_late_deletes_nothing_that_was_restored(
    mona: User, channel: Channel, state: StepState
) -> None:
    ids = old_ids(20)
    purge, late = outlive_lease(mona, channel, ids, state)
    again = Message(channel_id=channel.id, message_id=ids[4], author_id=VICTOR, content="back again")
    messages.insert_message(again, stamp_us=issue_stamp(channel.id, again.bucket))
    with pytest.raises(StepLost):
        finish_step(late, pace=Pace(1_000))
    assert ids_of(channel, again.bucket) == [ids[4]]
    assert totals_of(purge).deleted == 20
    assert AuditEntry.objects.get(purge=purge, action="channel_purged").details["deleted"] == 20


@pytest.mark.parametrize("state", TAKEOVER_STATES)
def test_a_worker_that_resumes_late_records_no_count(mona: User, channel: Channel, state: StepState) -> None:
    ids = old_ids(20)
    _, late = outlive_lease(mona, channel, ids, state)
    # As an import that has locked the channel since, and has more to write.
    bucket = bucket_of(ids[0])
    stamp = issue_stamp(channel.id, bucket)
    clear_live_at({(channel.id, bucket): stamp - settings.CLOCK_SKEW_SECONDS * 1_000_000})
    with pytest.raises(StepLost):
        finish_step(late, pace=Pace(1_000))
    assert ledger.read_live(channel.id, bucket) == UNKNOWN


def test_the_counting_worker_counts_what_it_saw_itself(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    killed = claim(purge)
    take_to(killed, StepState.DELETED)
    move_step(killed, StepState.VERIFIED, failed_ids=pack_ids(ids[:3]))
    expire_lease(purge)
    purge = run_purge(purge.id)
    assert ids_of(channel, bucket_of(ids[0])) == []
    assert (purge.state, totals_of(purge).deleted, totals_of(purge).failed) == (PurgeState.DONE, 20, 0)


def test_a_step_that_fails_unexpectedly_reports_it_and_blocks_no_other(mona: User, channel: Channel) -> None:
    first, second = old_ids(30, buckets_ago=4), old_ids(30, buckets_ago=3)
    write(channel, [*first, *second])
    purge = confirm(mona, preview(mona, everything(channel)))
    Step.objects.filter(purge_id=purge.id, ordinal=1).update(ids=b"not packed ids")
    waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.WAITING
    assert "unexpected error" in waiting.wait_reason
    assert ids_of(channel, bucket_of(first[0]), bucket_of(second[0])) == first
    assert (totals_of(waiting).deleted, totals_of(waiting).left) == (30, 30)
    assert lock_owner(channel.id) is None
    Step.objects.filter(purge_id=purge.id, ordinal=1).update(ids=pack_ids(first), due_at=None)
    assert run_purge(purge.id).state == PurgeState.DONE


@pytest.mark.slow
@pytest.mark.alone
def test_a_worker_does_not_wait_forever_for_a_channel(mona: User, channel: Channel) -> None:
    """The lock owner may be a purge without a worker, and this worker may be the only one."""
    write(channel, old_ids(20))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert lock_channel(channel.id, job="purge:1")
    began = time.monotonic()
    waiting = run_purge(purge.id, idle_timeout_seconds=6)
    assert 4 < time.monotonic() - began < 12
    assert (waiting.state, totals_of(waiting).left) == (PurgeState.WAITING, 20)
    release_channel(channel.id, job="purge:1")


def test_a_worker_with_a_wrong_clock_changes_nothing_and_the_purge_reports_it(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    right = time.time_ns
    with monkeypatch.context() as skewed:
        skewed.setattr(time, "time_ns", lambda: right() + 9_000_000_000)
        waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.WAITING
    assert "clock of process" in waiting.wait_reason
    assert ids_of(channel, bucket_of(ids[0])) == ids
    assert run_purge(purge.id, idle_timeout_seconds=15).state == PurgeState.DONE


@pytest.mark.parametrize("lost_at", [None, StepState.STAMPED, StepState.DELETED])
def test_a_cancelled_purge_completes_wherever_its_worker_was_lost(
    mona: User, channel: Channel, lost_at: StepState | None
) -> None:
    first, second = old_ids(20, buckets_ago=4), old_ids(20, buckets_ago=3)
    write(channel, [*first, *second])
    purge = confirm(mona, preview(mona, everything(channel)))
    lost = claim(purge)
    if lost_at is not None:
        take_to(lost, lost_at)
    cancel_purge(purge.id, moderator=mona)
    advance_purge(purge.id)
    assert lock_owner(channel.id) == f"purge:{purge.id}"
    expire_lease(purge)
    assert purge.id in due_purges()
    purge = run_purge(purge.id)
    assert purge.state == PurgeState.CANCELLED
    assert lock_owner(channel.id) is None
    gone = 0 if lost_at is None else 20
    assert (totals_of(purge).deleted, totals_of(purge).left) == (gone, 40 - gone)
    assert ids_of(channel, bucket_of(first[0]), bucket_of(second[0])) == [*first[gone:], *second]
    with pytest.raises(StepLost):
        finish_step(lost, pace=Pace(1_000)) if lost_at else quarantine_step(lost, pace=Pace(1_000))


def test_a_purge_cancelled_before_any_step_began_is_cancelled_completely(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    cancel_purge(purge.id, moderator=mona)
    purge = run_purge(purge.id)
    assert (purge.state, totals_of(purge).left) == (PurgeState.CANCELLED, 20)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_purge_whose_worker_died_before_completion_is_still_finished(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    purge = confirm(mona, preview(mona, everything(channel)))
    step = claim(purge)
    take_to(step, StepState.STAMPED)
    finish_step(step, pace=Pace(1_000))
    assert lock_owner(channel.id) == f"purge:{purge.id}"
    assert purge.id in due_purges()
    assert run_purge(purge.id).state == PurgeState.DONE
    assert lock_owner(channel.id) is None


def test_a_paused_purge_whose_worker_was_killed_unlocks_its_channel(mona: User, channel: Channel) -> None:
    write(channel, [*old_ids(20, buckets_ago=4), *old_ids(20, buckets_ago=3)])
    purge = confirm(mona, preview(mona, everything(channel)))
    quarantine_step(claim(purge), pace=Pace(1_000))
    pause_purge(purge.id, moderator=mona)
    run_purge(purge.id, idle_timeout_seconds=0)
    assert lock_owner(channel.id) == f"purge:{purge.id}"
    assert purge.id not in due_purges()
    expire_lease(purge)
    assert purge.id in due_purges()
    assert run_purge(purge.id).state == PurgeState.PAUSED
    assert lock_owner(channel.id) is None
    assert purge.id not in due_purges()
    resume_purge(purge.id, moderator=mona)
    assert run_purge(purge.id).state == PurgeState.DONE


def test_a_paused_purge_whose_worker_was_killed_after_the_last_step_is_finished(mona: User, channel: Channel) -> None:
    purge = paused_after_its_last_stamp(mona, channel)
    release_channel(channel.id, job=f"purge:{purge.id}")
    assert purge.id in due_purges()
    assert run_purge(purge.id).state == PurgeState.DONE
    assert purge.id not in due_purges()


def test_a_requeued_step_blocks_no_other(mona: User, channel: Channel) -> None:
    write(channel, [*old_ids(20, buckets_ago=4), *old_ids(20, buckets_ago=3)])
    purge = confirm(mona, preview(mona, everything(channel)))
    requeue_step(claim(purge), due_in=0, reason="its replicas are away")
    assert [claim(purge).ordinal, claim(purge).ordinal] == [2, 1]


def test_a_purge_is_due_again_when_the_lease_of_its_worker_has_expired(mona: User, channel: Channel) -> None:
    write(channel, [*old_ids(20, buckets_ago=4), *old_ids(20, buckets_ago=3)])
    purge = confirm(mona, preview(mona, everything(channel)))
    assert purge.id in due_purges()
    claim(purge)
    assert purge.id not in due_purges()
    expire_lease(purge)
    assert purge.id in due_purges()


def test_a_worker_paused_past_its_lease_does_not_claim_its_own_step_again(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    purge = confirm(mona, preview(mona, everything(channel)))
    token = uuid.uuid4()
    assert claim_step(purge.id, token=token) is not None
    expire_lease(purge)
    assert claim_step(purge.id, token=token) is None
    assert claim_step(purge.id, token=uuid.uuid4()) is not None


def test_a_worker_keeps_its_claim_during_a_scan_of_a_large_bucket(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(channel, old_ids(messages.SCAN_FETCH + 1))
    monkeypatch.setattr(bucket_reads, "RENEW_SECONDS", 0)
    with CaptureQueriesContext(connection) as sent:
        purge = preview(mona, everything(channel))
    renewals = [query for query in sent if query["sql"].startswith('UPDATE "moderation_purge" SET "scan_lease_until"')]
    # One for the group of buckets, and one for each page.
    assert len(renewals) == 3
    assert (purge.state, purge.manifest) == (PurgeState.READY, messages.SCAN_FETCH + 1)


def test_a_purge_paused_after_its_last_stamp_is_done_and_not_paused(mona: User, channel: Channel) -> None:
    purge = advance_purge(paused_after_its_last_stamp(mona, channel).id)
    assert (purge.state, totals_of(purge).left) == (PurgeState.DONE, 0)
    assert lock_owner(channel.id) is None


def test_the_worker_that_counts_an_undo_step_reports_what_it_read_itself(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    undo = request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")

    class CrashError(Exception):
        pass

    def crash(*_: object, **__: object) -> None:
        raise CrashError

    with monkeypatch.context() as patched:
        patched.setattr("moderation.operations.undo.restore._count", crash)
        with pytest.raises(CrashError):
            restore_step(claim_undo(purge), pace=Pace(1_000))
    # As if the killed worker had read before the last messages arrived.
    undo.steps.update(failed_ids=pack_ids(ids[:3]), lease_until="2020-01-01T00:00:00Z")
    assert run_purge(purge.id).state == PurgeState.UNDONE
    step = undo.steps.get()
    assert (step.restored, step.failed, list(unpack_ids(step.failed_ids))) == (20, 0, [])


def test_a_worker_with_a_wrong_clock_does_not_continue_an_undo(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = old_ids(20)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    killed = claim_undo(purge)
    move_step(killed, UndoStepState.PLANNING)
    stamp = issue_stamp(channel.id, killed.bucket)
    move_step(killed, UndoStepState.STAMPED, restore_stamp=stamp, restore_ids=pack_ids(ids), requested=20)
    purge.undo_steps.update(lease_until="2020-01-01T00:00:00Z")
    right = time.time_ns
    with monkeypatch.context() as skewed:
        skewed.setattr(time, "time_ns", lambda: right() - 60_000_000_000)
        waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert (waiting.state, ids_of(channel, killed.bucket)) == (PurgeState.UNDOING, [])
    assert "clock of process" in waiting.wait_reason
    assert run_purge(purge.id).state == PurgeState.UNDONE
    assert [message.message_id for message in read_page(channel.id).messages] == ids[::-1]
