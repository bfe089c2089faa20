"""One job per channel: the next one waits, names the blocking job, and continues as soon as that is done."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db.models import F, Max
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepKind
from moderation.models import Purge, Step, Undo, UndoStep
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.scheduling import clear_wakeup, reserve_wakeup, unblocked_purges
from moderation.operations.purging.wait_reasons import Wait, wait_of
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.store.pace import Pace
from tests.changed_audit_log import change_audit_log
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    choose,
    claim,
    claim_undo,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)
from tests.moderation.incident.processes import enqueue_workers, pause_purges_of_other_tests, running_worker
from tests.moderation.steps import quarantine_step
from tests.waiting import LIMIT_SECONDS, wait_until

STARTS_WITHIN = dt.timedelta(seconds=2)


def block_purge(purge: Purge) -> Purge:
    """Run the purge once while another job has the channel locked."""
    waiting = run_purge(purge.id, wait_for_channel=False)
    assert waiting.state in (PurgeState.WAITING, PurgeState.UNDOING)
    return waiting


def wait_at(user: User, purge: Purge) -> Wait:
    wait = wait_of(user, Purge.objects.get(id=purge.id))
    assert wait is not None
    return wait


def last_counted(job: Purge | Undo) -> dt.datetime:
    """Return when the last step ended: from then on its channel is unlocked, shortly before its job is finished."""
    last: dt.datetime = job.steps.aggregate(at=Max("counted_at"))["at"]
    return last


def leave_rewrite_queued(mona: User, channel: Channel) -> tuple[Purge, Purge]:
    """Run a purge by row that leaves too many tombstones; return it with the rewrite that is due."""
    write(channel, recent_ids(600))
    purge = purge_now(mona, by_victor(channel))
    rewrite = Step.objects.get(channel_id=channel.id, kind=StepKind.REWRITE)
    Step.objects.filter(purge_id=rewrite.purge_id).update(due_at=None)
    return purge, rewrite.purge


def test_the_next_purge_of_a_channel_waits_and_its_page_links_to_the_one_before(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    write(channel, old_ids(20))
    first, second = (confirm(mona, preview(mona, everything(channel))) for _ in range(2))
    claim(first)
    wait = wait_at(mona, block_purge(second))
    assert wait.blocking_purge == first
    assert wait.reason.startswith(f"Waiting behind a purge by {mona.username}: the whole channel")
    assert str(first.id) not in wait.reason
    page = sign_in(mona).get(f"/purges/{second.id}/").content.decode()
    assert f'<a href="/purges/{first.id}/">View that purge</a>' in page
    assert "About to delete 20 messages" in page
    assert wait_of(mona, Purge.objects.get(id=first.id)) is None


def test_a_purge_blocked_by_an_undo_shows_it(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    first = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    second = confirm(mona, preview(mona, everything(channel)))
    request_undo(first.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    claim_undo(first)
    wait = wait_at(mona, block_purge(second))
    assert wait.blocking_purge == first
    assert wait.reason.startswith(f"Waiting behind the undo of a purge by {mona.username}: the whole channel")


def test_an_undo_waits_behind_a_purge(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    first = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    second = confirm(mona, preview(mona, everything(channel)))
    claim(second)
    request_undo(first.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    wait = wait_at(mona, block_purge(first))
    assert wait.blocking_purge == second
    assert wait.reason.startswith(f"Waiting behind a purge by {mona.username}: the whole channel")


def test_a_purge_blocked_by_a_rewrite_names_the_purge_that_queued_it(mona: User, channel: Channel) -> None:
    left_by, rewrite = leave_rewrite_queued(mona, channel)
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    claim(rewrite)
    wait = wait_at(mona, block_purge(purge))
    assert wait.blocking_purge == left_by
    assert wait.reason.startswith(f"Waiting behind the rewrite after a purge by {mona.username}: all messages by")


def test_a_purge_blocked_by_an_erasure_names_the_erased_purge(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    erased = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert lock_channel(channel.id, job=f"erase:{erased.id}")
    wait = wait_at(mona, block_purge(purge))
    assert wait.blocking_purge == erased
    assert wait.reason.startswith(
        f"Waiting behind the permanent deletion of a purge by {mona.username}: the whole channel"
    )
    release_channel(channel.id, job=f"erase:{erased.id}")


def test_details_of_the_blocking_purge_need_permission(mona: User, tess: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    first, second = (confirm(mona, preview(mona, everything(channel))) for _ in range(2))
    claim(first)
    assert wait_at(tess, block_purge(second)) == Wait("Waiting behind another job", is_behind_job=True)


def test_a_purge_of_several_channels_is_not_blocked_while_one_is_free(mona: User, channel: Channel) -> None:
    elsewhere = make_channel()
    for each in (channel, elsewhere):
        write(each, old_ids(5))
    purge = confirm(mona, preview(mona, Selection(channel_ids=(channel.id, elsewhere.id), where=Author((VICTOR,)))))
    assert lock_channel(channel.id, job="import:7")
    assert wait_of(mona, purge) is None
    assert lock_channel(elsewhere.id, job="import:7")
    assert wait_at(mona, purge).reason == "Waiting behind an import into the channel"
    for each in (channel, elsewhere):
        release_channel(each.id, job="import:7")


def test_a_finished_job_is_not_named_as_blocking(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert lock_channel(channel.id, job="import:7")
    assert wait_at(mona, block_purge(purge)).reason == "Waiting behind an import into the channel"
    release_channel(channel.id, job="import:7")
    assert wait_at(mona, purge).reason == "Waiting for a worker; the channel is unlocked"
    assert run_purge(purge.id).state == PurgeState.DONE


def test_waiting_jobs_are_enqueued_in_request_order_and_rewrites_last(mona: User, channel: Channel) -> None:
    undone, rewrite = leave_rewrite_queued(mona, channel)
    write(channel, old_ids(5))
    first, second, third = (confirm(mona, preview(mona, everything(channel))) for _ in range(3))
    request_undo(undone.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    enqueued = []
    done = first.id
    for _ in range(4):
        (following,) = unblocked_purges(done)
        enqueued.append(following)
        Step.objects.filter(purge_id__in=(done, following)).exclude(state="counted").update(state="cancelled")
        UndoStep.objects.filter(purge_id=following).update(state="counted")
        done = following
    assert enqueued == [second.id, third.id, undone.id, rewrite.id]
    assert unblocked_purges(rewrite.id) == []


def test_no_job_is_enqueued_for_a_locked_or_other_channel_or_while_paused(mona: User, channel: Channel) -> None:
    write(channel, old_ids(5))
    done = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    elsewhere = make_channel()
    write(elsewhere, old_ids(5))
    confirm(mona, preview(mona, everything(elsewhere)))
    assert unblocked_purges(done.id) == [purge.id]
    assert lock_channel(channel.id, job="import:7")
    assert unblocked_purges(done.id) == []
    release_channel(channel.id, job="import:7")
    pause_purge(purge.id, moderator=mona)
    assert unblocked_purges(done.id) == []


@pytest.mark.slow
@pytest.mark.alone
def test_purge_undo_and_rewrite_follow_each_other_without_polling(mona: User, channel: Channel, tmp_path: Path) -> None:
    pause_purges_of_other_tests()
    undone, rewrite = leave_rewrite_queued(mona, channel)
    parts = [old_ids(count, buckets_ago=ago) for count, ago in ((20_000, 5), (300, 4), (300, 3))]
    for part in parts:
        write(channel, part, author=WILMA)
    first, second, third = (
        confirm(mona, preview(mona, choose(channel.id, author_ids=(WILMA,), after_id=part[0], before_id=part[-1] + 1)))
        for part in parts
    )
    undo = request_undo(undone.id, moderator=mona, part=UndoPart(author_ids=(VICTOR,)), reason="Appeal accepted")
    # No beat runs here: only the finished purge can enqueue the next one.
    with running_worker(tmp_path, processes=2):
        enqueue_workers(first.id)
        wait_until(lambda: Purge.objects.get(id=first.id).started_at is not None)
        for purge in (second, third, undone, rewrite):
            enqueue_workers(purge.id)
        wait_until(lambda: Purge.objects.get(id=rewrite.id).started_at is not None)
    for each in (first, second, third, undo):
        each.refresh_from_db()
    assert {first.state, second.state, third.state} == {PurgeState.DONE}
    rewrite.refresh_from_db()
    for ended, started in (
        (last_counted(first), second.started_at),
        (last_counted(second), third.started_at),
        (last_counted(third), undo.finished_at),
        (last_counted(undo), rewrite.started_at),
    ):
        assert started is not None
        assert ended < started < ended + STARTS_WITHIN


def test_a_purge_without_a_worker_shows_it(mona: User, channel: Channel, sign_in: Callable[[User], Client]) -> None:
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert wait_of(mona, purge) is None
    minute = dt.timedelta(minutes=1)
    Purge.objects.filter(id=purge.id).update(confirmed_at=F("confirmed_at") - minute)
    change_audit_log("UPDATE moderation_auditentry SET at = at - interval '1 minute' WHERE purge_id = %s", purge.pk)
    wait = wait_at(mona, purge)
    assert wait.idle_seconds is not None
    assert 60 <= wait.idle_seconds < 60 + LIMIT_SECONDS
    page = sign_in(mona).get(f"/purges/{purge.id}/").content.decode()
    assert re.search(r"No worker has picked this up for \d\smin", page)
    claim(purge)
    assert wait_of(mona, Purge.objects.get(id=purge.id)) is None


def test_a_purge_behind_another_job_shows_only_that_reason(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    Purge.objects.filter(id=purge.id).update(confirmed_at=F("confirmed_at") - dt.timedelta(minutes=1))
    change_audit_log("UPDATE moderation_auditentry SET at = at - interval '1 minute' WHERE purge_id = %s", purge.pk)
    assert lock_channel(channel.id, job="import:7")
    assert wait_at(mona, purge).idle_seconds is not None
    page = sign_in(mona).get(f"/purges/{purge.id}/").content.decode()
    assert "Waiting behind an import into the channel." in page
    assert "No worker has picked this up" not in page
    release_channel(channel.id, job="import:7")


def test_a_purge_that_waits_for_its_turn_shows_for_how_long_and_how_many_others_come_first(mona: User) -> None:
    purges = []
    for _ in range(3):
        channel = make_channel()
        write(channel, old_ids(5))
        purges.append(confirm(mona, preview(mona, everything(channel))))
    first, second, third = purges
    Purge.objects.update(wakeup_expires_at=None)
    for purge in purges:
        assert reserve_wakeup(purge.pk)
    assert wait_of(mona, Purge.objects.get(pk=first.pk)) is None
    Purge.objects.update(wakeup_expires_at=F("wakeup_expires_at") - dt.timedelta(seconds=5))
    assert re.fullmatch(r"Waiting for a worker for \d+ s; it comes next", wait_at(mona, first).reason)
    assert wait_at(mona, second).reason.endswith(" s; 1 other purge comes first")
    assert wait_at(mona, third).reason.endswith(" s; 2 other purges come first")
    # One after the other begins its turn.
    clear_wakeup(first.pk)
    assert wait_at(mona, third).reason.endswith(" s; 1 other purge comes first")
    clear_wakeup(second.pk)
    assert re.fullmatch(r"Waiting for a worker for \d+ s", wait_at(mona, third).reason)
    # A worker processes it, although another one is enqueued.
    claim(third)
    assert wait_of(mona, Purge.objects.get(pk=third.pk)) is None
    clear_wakeup(third.pk)


def test_a_purge_that_waits_for_the_disk_shows_it(mona: User, channel: Channel) -> None:
    write(channel, old_ids(200))
    purge = confirm(mona, preview(mona, everything(channel)))
    quarantine_step(claim(purge), pace=Pace(1_000))
    wait = wait_at(mona, purge)
    assert wait.reason.startswith("Waiting for the undo copy to reach disk")
    assert wait.until is not None


def test_a_scan_that_waits_for_the_store_shows_it_on_its_page(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    write(channel, old_ids(5))
    purge = preview(mona, everything(channel))
    Purge.objects.filter(id=purge.id).update(state=PurgeState.SCANNING, wait_reason="Waiting: too few replicas answer")
    assert "Waiting: too few replicas answer." in sign_in(mona).get(f"/purges/{purge.id}/").content.decode()


def test_a_cleared_blocker_is_no_longer_named(mona: User, channel: Channel) -> None:
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    advance_purge(purge.id, blocked_by="Waiting: too few replicas answer")
    assert wait_at(mona, purge).reason == "Waiting: too few replicas answer"
    assert run_purge(purge.id).state == PurgeState.DONE
    assert wait_of(mona, Purge.objects.get(id=purge.id)) is None
