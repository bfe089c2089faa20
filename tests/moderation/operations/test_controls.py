"""A purge can be paused, resumed, cancelled and continued, and failed messages can be retried."""

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.store import messages
from moderation.domain.packing import pack_ids
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.purging.controls import cancel_purge, finish_purge, pause_purge, resume_purge, retry_purge
from moderation.operations.purging.quarantine import describe_unknown_columns
from moderation.operations.purging.scheduling import due_purges
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import StepLost, requeue_step
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.store.pace import Pace
from moderation.store.quarantine import quarantine_attempts
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    buckets_of,
    by_victor,
    claim,
    confirm,
    everything,
    ids_of,
    old_ids,
    preview,
    recent_ids,
    run_to_end,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step

AFTER = {pause_purge: PurgeState.PAUSED, cancel_purge: PurgeState.CANCELLED}


def confirmed(mona: User, channel: Channel, ids: list[int]) -> Purge:
    write(channel, ids)
    return confirm(mona, preview(mona, everything(channel)))


def test_a_paused_purge_unlocks_its_channel_and_continues_when_resumed(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    purge = confirmed(mona, channel, ids)
    pause_purge(purge.id, moderator=mona)
    assert run_purge(purge.id).state == PurgeState.PAUSED
    assert lock_owner(channel.id) is None
    assert ids_of(channel, bucket_of(ids[0])) == ids
    assert purge.id not in due_purges()
    resume_purge(purge.id, moderator=mona)
    assert purge.id in due_purges()
    assert run_purge(purge.id).state == PurgeState.DONE


def test_pausing_stops_a_step_before_its_stamp(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    purge = confirmed(mona, channel, ids)
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(1_000))
    pause_purge(purge.id, moderator=mona)
    with pytest.raises(StepLost):
        stamp_step(step, kept)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_stamped_step_of_a_paused_purge_is_finished(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    purge = confirmed(mona, channel, ids)
    step = claim(purge)
    stamp_step(step, quarantine_step(step, pace=Pace(1_000)))
    pause_purge(purge.id, moderator=mona)
    finish_step(step, pace=Pace(10_000))
    assert ids_of(channel, bucket_of(ids[0])) == []
    assert (run_purge(purge.id).state, totals_of(purge).deleted) == (PurgeState.DONE, 150)


def test_a_cancelled_purge_can_be_continued(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    purge = confirmed(mona, channel, ids)
    cancel_purge(purge.id, moderator=mona)
    assert run_purge(purge.id).state == PurgeState.CANCELLED
    finish_purge(purge.id, moderator=mona)
    purge = run_purge(purge.id)
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, 150)


def test_failed_messages_are_retried_in_a_step_of_their_own(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    purge = confirmed(mona, channel, ids[:140])
    run_purge(purge.id)
    # As if ten messages had come back three times during the run.
    back = [Message(channel_id=channel.id, message_id=message_id, author_id=VICTOR) for message_id in ids[140:]]
    messages.insert_messages(back, stamp_us=wall_clock_us())
    Step.objects.filter(purge=purge).update(ids=pack_ids(ids), count=150, failed=10, failed_ids=pack_ids(ids[140:]))
    Purge.objects.filter(id=purge.id).update(state=PurgeState.DONE_WITH_FAILURES, manifest=150)
    retry_purge(purge.id, moderator=mona)
    purge = run_to_end(purge)
    total = totals_of(purge)
    assert (purge.state, total.deleted, total.failed, total.left) == (PurgeState.DONE, 150, 0, 0)
    assert ids_of(channel, bucket_of(ids[0])) == []


def test_a_step_that_was_refused_completely_is_retried(mona: User, channel: Channel) -> None:
    purge = confirmed(mona, channel, old_ids(150))
    Step.objects.filter(purge=purge).update(state=StepState.FAILED, failed=150, error="an unknown column")
    assert run_purge(purge.id).state == PurgeState.DONE_WITH_FAILURES
    retry_purge(purge.id, moderator=mona)
    assert run_purge(purge.id).state == PurgeState.DONE


def test_a_cancel_after_the_last_step_leaves_the_purge_done(mona: User, channel: Channel) -> None:
    purge = confirmed(mona, channel, old_ids(150))
    step = claim(purge)
    stamp_step(step, quarantine_step(step, pace=Pace(10_000)))
    cancel_purge(purge.id, moderator=mona)
    finish_step(step, pace=Pace(10_000))
    assert (run_purge(purge.id).state, totals_of(purge).deleted) == (PurgeState.DONE, 150)


def stop_after_the_first_bucket(mona: User, channel: Channel, action: Callable[..., Purge]) -> Purge:
    """Run a purge of two buckets of 150 messages, with the action after the first one was counted."""
    purge = confirmed(mona, channel, [*old_ids(150, buckets_ago=4), *old_ids(150, buckets_ago=3)])
    step = claim(purge)
    stamp_step(step, quarantine_step(step, pace=Pace(10_000)))
    finish_step(step, pace=Pace(10_000))
    action(purge.id, moderator=mona)
    return run_purge(purge.id)


def test_a_purge_that_has_deleted_nothing_does_not_speak_of_restoring(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    purge = confirmed(mona, channel, old_ids(3))
    page = sign_in(mona).get(f"/purges/{purge.id}/").content.decode()
    assert "Nothing has been deleted yet." in page
    assert "You can restore them." not in page


def test_a_paused_purge_shows_what_is_deleted_and_can_be_resumed_or_cancelled(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    purge = stop_after_the_first_bucket(mona, channel, pause_purge)
    page = sign_in(mona).get(f"/purges/{purge.id}/").content.decode()
    assert "Paused: 150 messages deleted, 150 left." in page
    assert [bool(re.search(rf">\s*{label}\s*</button>", page)) for label in ("Resume", "Cancel purge")] == [True, True]


def test_a_cancelled_purge_shows_what_is_deleted_and_can_be_continued(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    purge = stop_after_the_first_bucket(mona, channel, cancel_purge)
    client, path = sign_in(mona), f"/purges/{purge.id}/"
    page = client.get(path).content.decode()
    assert "Cancelled: 150 messages deleted, 150 left." in page
    assert "Delete the remaining 150 messages" in page
    client.post(f"{path}finish/")
    assert (run_purge(purge.id).state, totals_of(purge).deleted) == (PurgeState.DONE, 300)


@pytest.mark.parametrize("action", [pause_purge, cancel_purge])
def test_the_deleted_part_of_a_cancelled_purge_can_be_undone(
    mona: User, channel: Channel, sign_in: Callable[[User], Client], action: Callable[..., Purge]
) -> None:
    purge = stop_after_the_first_bucket(mona, channel, action)
    client, path = sign_in(mona), f"/purges/{purge.id}/"
    assert "Restore 150 messages" in client.get(path).content.decode()
    client.post(f"{path}undo/", {"reason": "Appeal accepted"})
    assert run_purge(purge.id).state == PurgeState.UNDONE
    ids = [*old_ids(150, buckets_ago=4), *old_ids(150, buckets_ago=3)]
    assert len(ids_of(channel, *{bucket_of(each) for each in ids})) == 300


def test_a_paused_purge_cannot_be_undone_while_a_worker_runs_one_of_its_steps(mona: User, channel: Channel) -> None:
    purge = confirmed(mona, channel, [*old_ids(150, buckets_ago=4), *old_ids(150, buckets_ago=3)])
    first, second = claim(purge), claim(purge)
    for step in (first, second):
        stamp_step(step, quarantine_step(step, pace=Pace(10_000)))
    finish_step(first, pace=Pace(10_000))
    pause_purge(purge.id, moderator=mona)
    with pytest.raises(BadInput, match="Try again in a moment"):
        request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    finish_step(second, pace=Pace(10_000))
    run_purge(purge.id)
    request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_purge(purge.id).state == PurgeState.UNDONE


def test_failures_are_shown_by_bucket_and_message_with_their_error(
    mona: User, channel: Channel, sign_in: Callable[[User], Client], capsys: pytest.CaptureFixture[str]
) -> None:
    whole, some = old_ids(150, buckets_ago=4), old_ids(150, buckets_ago=3)
    purge = confirmed(mona, channel, [*whole, *some])
    run_purge(purge.id)
    first, second = purge.steps.order_by("ordinal")
    fail(first, whole, describe_unknown_columns(("mood",)))
    fail(second, some[:3], "written again")
    Purge.objects.filter(id=purge.id).update(state=PurgeState.DONE_WITH_FAILURES)
    page = sign_in(mona).get(f"/purges/{purge.id}/").content.decode()
    assert "150 messages not deleted" in page
    assert "Ask an operator to update Chatstore, then retry." in " ".join(page.split())
    assert "does not copy: mood</p>\n          </details>" in page
    assert "This was not expected. Ask an operator, and show them the details." in page
    assert "and 140 more" in page
    assert "3 messages not deleted" in page
    for message_id in some[:3]:
        link = f'<a href="/channels/{channel.id}/{message_id}/"><time datetime="{time_of(message_id).isoformat()}"'
        assert link in page
    assert "Retry 153 failed messages" in page
    call_command("purge_show", str(purge.id))
    output = capsys.readouterr().out
    assert f"bucket {bucket_of(some[0])} of channel {channel.id}: 3 failed: written again" in output
    assert str(some[2]) in output


def fail(step: Step, ids: list[int], error: str) -> None:
    """Mark these messages as failed during the run of the step."""
    Step.objects.filter(purge_id=step.purge_id, ordinal=step.ordinal).update(
        deleted=step.count - len(ids), failed=len(ids), failed_ids=pack_ids(ids), error=error
    )


def test_controls_that_do_not_fit_the_state_are_refused(mona: User, channel: Channel) -> None:
    purge = confirmed(mona, channel, old_ids(150))
    run_purge(purge.id)
    for action, word in (
        (pause_purge, "paused"),
        (resume_purge, "resumed"),
        (finish_purge, "finished"),
        (retry_purge, "retried"),
        (cancel_purge, "cancelled"),
    ):
        with pytest.raises(BadInput, match=f"cannot be {word}"):
            action(purge.id, moderator=mona)


def when(happens: Callable[[], bool], action: Callable[..., Purge], purge: Purge, mona: User) -> Future[float]:
    """Run the action in another thread as soon as the condition is true; yield the time."""

    def wait_and_run() -> float:
        try:
            while not happens():
                time.sleep(0.01)
            action(purge.id, moderator=mona)
            return time.monotonic()
        finally:
            connection.close()

    return _others.submit(wait_and_run)


_others = ThreadPoolExecutor(1)


def is_at(purge: Purge, state: StepState) -> Callable[[], bool]:
    return lambda: Step.objects.filter(purge=purge, state=state).exists()


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("make_ids", [partial(old_ids, 60_000), partial(recent_ids, 30_000)])
def test_a_pause_takes_effect_within_two_seconds_while_a_large_bucket_is_quarantined(
    mona: User, channel: Channel, make_ids: Callable[[], list[int]]
) -> None:
    purge = confirmed(mona, channel, make_ids())
    step = claim(purge)
    paused = when(lambda: bool(quarantine_attempts(purge.id, channel.id, step.bucket)), pause_purge, purge, mona)
    with pytest.raises(StepLost):
        quarantine_step(step, pace=Pace(1_000))
    assert time.monotonic() - paused.result() < 2
    assert Step.objects.get(purge=purge).state == StepState.QUARANTINING


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("action", [pause_purge, cancel_purge])
def test_rows_not_sent_yet_are_kept_and_counted_separately(
    mona: User, channel: Channel, action: Callable[..., Purge]
) -> None:
    ids = recent_ids(20_000)
    purge = confirmed(mona, channel, ids)
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(20_000))
    stamp_step(step, kept)
    acted = when(is_at(purge, StepState.REWRITTEN), action, purge, mona)
    # Two seconds' worth of deletes, and those in flight.
    finish_step(step, pace=Pace(2_000), quarantined=kept)
    acted.result()
    purge = run_purge(purge.id)
    total = totals_of(purge)
    assert (purge.state, total.deleted + total.left) == (AFTER[action], 20_000)
    assert 0 < total.deleted <= 10_000
    assert len(ids_of(channel, *buckets_of(ids))) == total.left
    assert lock_owner(channel.id) is None
    (resume_purge if action is pause_purge else finish_purge)(purge.id, moderator=mona)
    purge = run_purge(purge.id)
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, 20_000)
    request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_purge(purge.id).state == PurgeState.UNDONE
    assert ids_of(channel, *buckets_of(ids)) == ids


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("action", [pause_purge, cancel_purge])
def test_nothing_is_deleted_when_it_is_cancelled_while_survivors_are_rewritten(
    mona: User, channel: Channel, action: Callable[..., Purge]
) -> None:
    ids = old_ids(20_000)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(20_000))
    stamp_step(step, kept)
    acted = when(lambda: True, action, purge, mona)
    with pytest.raises(StepLost):
        finish_step(step, pace=Pace(1_000), quarantined=kept)
    assert time.monotonic() - acted.result() < 2
    assert step.state == StepState.PENDING
    requeue_step(step, due_in=0, reason="")
    purge = run_purge(purge.id)
    assert (purge.state, totals_of(purge).left, lock_owner(channel.id)) == (AFTER[action], 10_000, None)
    assert ids_of(channel, step.bucket) == ids
    age_timestamps(channel)
    (resume_purge if action is pause_purge else finish_purge)(purge.id, moderator=mona)
    assert run_purge(purge.id, idle_timeout_seconds=30).state == PurgeState.DONE
    assert ids_of(channel, step.bucket) == ids[1::2]


def test_a_taken_over_step_is_finished_although_the_purge_is_paused(mona: User, channel: Channel) -> None:
    """The statements of the first worker are unknown, so none of its rows may be counted as left."""
    ids = recent_ids(5_000)
    purge = confirmed(mona, channel, ids)
    step = claim(purge)
    stamp_step(step, quarantine_step(step, pace=Pace(20_000)))
    pause_purge(purge.id, moderator=mona)
    Step.objects.filter(purge=purge).update(lease_until="2020-01-01T00:00:00Z")
    purge = run_purge(purge.id)
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, 5_000)
