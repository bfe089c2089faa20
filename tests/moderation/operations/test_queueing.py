"""One job per channel: the next one waits, names the blocking job, and continues as soon as that is done."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client

from chatstore.models import Channel
from chatstore.operations.coordination.channel_lock import hold_channel, release_channel
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepKind
from moderation.models import AuditEntry, Purge, Step
from moderation.operations.purging.completion import settle_purge
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.quarantine import quarantine_step
from moderation.operations.purging.scheduling import next_in_line
from moderation.operations.purging.wait_reasons import Wait, wait_of
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, ask_undo
from moderation.store.pace import Pace
from tests.moderation.incident.processes import one_worker, ring
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    by_victor,
    choose,
    claim,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)
from tests.waiting import LIMIT_SECONDS, wait_until

STARTS_WITHIN = dt.timedelta(seconds=2)


def let_wait(purge: Purge) -> Purge:
    """Run the purge once while another job has the channel locked."""
    waiting = run_purge(purge.id, waits_for_channel=False)
    assert waiting.state in (PurgeState.WAITING, PurgeState.UNDOING)
    return waiting


def wait_at(user: User, purge: Purge) -> Wait:
    wait = wait_of(user, Purge.objects.get(id=purge.id))
    assert wait is not None
    return wait


def leave_rewrite(mona: User, channel: Channel) -> tuple[Purge, Purge]:
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
    wait = wait_at(mona, let_wait(second))
    assert wait.behind == first
    assert wait.sentence.startswith(f"Waiting behind purge {first.id} (the whole channel")
    assert wait.sentence.endswith(f", by {mona.username})")
    page = sign_in(mona).get(f"/purges/{second.id}/").content.decode()
    assert f'<a href="/purges/{first.id}/">View that purge</a>' in page
    assert "About to delete 20 messages" in page
    assert wait_of(mona, Purge.objects.get(id=first.id)) is None


def test_who_waits_behind_an_undo_is_told_so(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    first = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    second = confirm(mona, preview(mona, everything(channel)))
    ask_undo(first.id, moderator=mona, part=UndoPart())
    claim(first)
    wait = wait_at(mona, let_wait(second))
    assert wait.behind == first
    assert wait.words.startswith(f"behind the undo of purge {first.id} (")


def test_an_undo_waits_behind_a_purge(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    first = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    second = confirm(mona, preview(mona, everything(channel)))
    claim(second)
    ask_undo(first.id, moderator=mona, part=UndoPart())
    wait = wait_at(mona, let_wait(first))
    assert (wait.behind, wait.words.startswith(f"behind purge {second.id} (")) == (second, True)


def test_who_waits_behind_a_rewrite_is_told_which_purge_left_it(mona: User, channel: Channel) -> None:
    left_by, rewrite = leave_rewrite(mona, channel)
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    claim(rewrite)
    wait = wait_at(mona, let_wait(purge))
    assert wait.behind == left_by
    assert wait.words.startswith(f"behind the rewrite that follows purge {left_by.id} (all messages by")


def test_who_may_not_see_the_other_purge_is_not_told_what_it_removes(mona: User, tess: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    first, second = (confirm(mona, preview(mona, everything(channel))) for _ in range(2))
    claim(first)
    assert wait_at(tess, let_wait(second)) == Wait("behind another job")


def test_a_purge_of_several_channels_is_behind_nobody_while_one_of_them_is_free(mona: User, channel: Channel) -> None:
    elsewhere = make_channel()
    for each in (channel, elsewhere):
        write(each, old_ids(5))
    purge = confirm(mona, preview(mona, Selection(channel_ids=(channel.id, elsewhere.id), where=Author((VICTOR,)))))
    assert hold_channel(channel.id, job="import:7")
    assert wait_of(mona, purge) is None
    assert hold_channel(elsewhere.id, job="import:7")
    assert wait_at(mona, purge).words == "behind an import into the channel"
    for each in (channel, elsewhere):
        release_channel(each.id, job="import:7")


def test_nobody_is_named_who_is_done_by_now(mona: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert hold_channel(channel.id, job="import:7")
    assert wait_at(mona, let_wait(purge)).words == "behind an import into the channel"
    release_channel(channel.id, job="import:7")
    assert wait_at(mona, purge).sentence == "Waiting for a worker; the channel is unlocked"
    assert run_purge(purge.id).state == PurgeState.DONE


def test_those_who_wait_are_called_in_the_order_in_which_they_were_asked_for_and_rewrites_last(
    mona: User, channel: Channel
) -> None:
    taken_back, rewrite = leave_rewrite(mona, channel)
    write(channel, old_ids(5))
    first, second, third = (confirm(mona, preview(mona, everything(channel))) for _ in range(3))
    ask_undo(taken_back.id, moderator=mona, part=UndoPart())
    called = []
    done = first.id
    for _ in range(4):
        (following,) = next_in_line(done)
        called.append(following)
        Step.objects.filter(purge_id__in=(done, following)).exclude(state="counted").update(state="cancelled")
        done = following
    assert called == [second.id, third.id, taken_back.id, rewrite.id]
    assert next_in_line(rewrite.id) == []


def test_nobody_is_called_for_a_channel_that_is_held_or_another_one_or_while_paused(
    mona: User, channel: Channel
) -> None:
    write(channel, old_ids(5))
    done = purge_now(mona, everything(channel))
    write(channel, recent_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    elsewhere = make_channel()
    write(elsewhere, old_ids(5))
    confirm(mona, preview(mona, everything(elsewhere)))
    assert next_in_line(done.id) == [purge.id]
    assert hold_channel(channel.id, job="import:7")
    assert next_in_line(done.id) == []
    release_channel(channel.id, job="import:7")
    pause_purge(purge.id, moderator=mona)
    assert next_in_line(done.id) == []


@pytest.mark.slow
@pytest.mark.alone
def test_purge_undo_and_rewrite_follow_each_other_without_anybody_looking(
    mona: User, channel: Channel, tmp_path: Path
) -> None:
    taken_back, rewrite = leave_rewrite(mona, channel)
    parts = [old_ids(count, buckets_ago=ago) for count, ago in ((20_000, 5), (300, 4), (300, 3))]
    for part in parts:
        write(channel, part, author=WILMA)
    first, second, third = (
        confirm(mona, preview(mona, choose(channel.id, author_ids=(WILMA,), after_id=part[0], before_id=part[-1] + 1)))
        for part in parts
    )
    undo = ask_undo(taken_back.id, moderator=mona, part=UndoPart(author_ids=(VICTOR,)))
    # No beat runs here: only the finished purge can enqueue the next one.
    with one_worker(tmp_path, processes=2):
        ring(first.id)
        wait_until(lambda: Purge.objects.get(id=first.id).state == PurgeState.RUNNING)
        for purge in (second, third, taken_back, rewrite):
            ring(purge.id)
        wait_until(lambda: Purge.objects.get(id=rewrite.id).started_at is not None)
    for each in (first, second, third, undo):
        each.refresh_from_db()
    assert {first.state, second.state, third.state} == {PurgeState.DONE}
    rewrite.refresh_from_db()
    for ended, started in (
        (first.finished_at, second.started_at),
        (second.finished_at, third.started_at),
        (third.finished_at, undo.finished_at),
        (undo.finished_at, rewrite.started_at),
    ):
        assert ended is not None
        assert started is not None
        assert ended < started < ended + STARTS_WITHIN


def test_a_purge_that_no_worker_looks_at_says_so(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert wait_of(mona, purge) is None
    minute = dt.timedelta(minutes=1)
    Purge.objects.filter(id=purge.id).update(confirmed_at=F("confirmed_at") - minute)
    AuditEntry.objects.filter(purge=purge).update(at=F("at") - minute)
    wait = wait_at(mona, purge)
    assert wait.unseen_seconds is not None
    assert 60 <= wait.unseen_seconds < 60 + LIMIT_SECONDS
    page = sign_in(mona).get(f"/purges/{purge.id}/").content.decode()
    assert re.search(r"No worker has picked this up for \d min", page)
    claim(purge)
    assert wait_of(mona, Purge.objects.get(id=purge.id)) is None


def test_a_purge_that_waits_for_the_disk_says_so(mona: User, channel: Channel) -> None:
    write(channel, old_ids(200))
    purge = confirm(mona, preview(mona, everything(channel)))
    quarantine_step(claim(purge), pace=Pace(1_000))
    wait = wait_at(mona, purge)
    assert wait.sentence.startswith("Waiting for the undo copy to reach disk")
    assert wait.until is not None


def test_a_scan_that_waits_for_the_store_says_so_on_its_page(
    mona: User, channel: Channel, sign_in: Callable[[User], Client]
) -> None:
    write(channel, old_ids(5))
    purge = preview(mona, everything(channel))
    Purge.objects.filter(id=purge.id).update(state=PurgeState.SCANNING, wait_reason="too few replicas answer")
    assert "Waiting: too few replicas answer." in sign_in(mona).get(f"/purges/{purge.id}/").content.decode()


def test_an_obstacle_that_went_away_is_no_longer_named(mona: User, channel: Channel) -> None:
    write(channel, old_ids(5))
    purge = confirm(mona, preview(mona, everything(channel)))
    settle_purge(purge.id, obstacle="too few replicas answer")
    assert wait_at(mona, purge).sentence == "Waiting: too few replicas answer"
    assert run_purge(purge.id).state == PurgeState.DONE
    assert wait_of(mona, Purge.objects.get(id=purge.id)) is None
