"""Each night the stored sums are compared with the steps; wrong ones are reported and computed again."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.domain.runs import RunState
from chatstore.models import Channel, Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import WRONG_SUMS
from chatstore.operations.jobs.runs import work_on_run
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge, PurgeDay, PurgePeriod, Undo
from moderation.operations.purging.sums_check import correct_sums, has_wrong_sums
from moderation.operations.steps.totals import count_still_deleted, totals_of
from moderation.operations.undo.import_guard import restore_on_import
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, WILMA, everything, make_channel, old_ids, purge_now, run_to_end, write


@pytest.fixture(autouse=True)
def _clean_up() -> Iterator[None]:
    yield
    Finding.objects.filter(kind=WRONG_SUMS).delete()


@pytest.fixture
def purge(mona: User, channel: Channel) -> Purge:
    """Create a purge of two buckets, one author of which was restored."""
    for ago in (3, 4):
        ids = old_ids(40, buckets_ago=ago)
        write(channel, ids[:30])
        write(channel, ids[30:], author=WILMA)
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(author_ids=(WILMA,)), reason="Appeal accepted")
    return run_to_end(purge)


def reported(purge: Purge) -> Finding | None:
    return Finding.objects.filter(kind=WRONG_SUMS, subject=str(purge.pk), closed_at=None).first()


def run_check() -> None:
    run = work_on_run(JobRun.objects.create(job="sums", due_at=postgres_now()).pk)
    assert run is not None
    assert run.state == RunState.DONE, run.error


def test_right_sums_are_not_reported(purge: Purge) -> None:
    assert not has_wrong_sums(purge.pk)
    run_check()
    assert reported(purge) is None


@pytest.mark.parametrize("name", ["period", "lost period", "day", "undo", "undo period"])
def test_a_wrong_sum_is_reported_and_computed_again(purge: Purge, name: str) -> None:
    match name:
        case "period":
            PurgePeriod.objects.filter(purge=purge).update(undone=F("undone") + 1)
        case "lost period":
            PurgePeriod.objects.filter(purge=purge, bucket=purge.periods.latest("bucket").bucket).delete()
        case "day":
            PurgeDay.objects.filter(purge=purge).update(deleted=0)
        case "undo":
            Undo.objects.filter(purge=purge).update(restored=0)
        case "undo period":
            Purge.objects.filter(pk=purge.pk).update(quarantined_at=F("quarantined_at") + dt.timedelta(days=1))
    assert has_wrong_sums(purge.pk)
    run_check()
    assert not has_wrong_sums(purge.pk)
    assert (totals_of(purge).deleted, count_still_deleted(purge)) == (80, 60)
    assert undo_totals_of(purge.undos.get()).restored == 20
    found = reported(purge)
    assert found is not None
    assert found.summary == f"The sums of purge {purge.pk} differed from its steps and were computed again."
    run_check()
    assert reported(purge) == found


def test_the_sums_of_an_old_purge_are_compared_while_it_can_be_undone(purge: Purge) -> None:
    Purge.objects.filter(pk=purge.pk).update(confirmed_at=postgres_now() - dt.timedelta(days=50), quarantined_at=None)
    run_check()
    purge.refresh_from_db()
    assert purge.quarantined_at is not None


def test_the_sums_of_a_purge_in_progress_are_left_alone(purge: Purge) -> None:
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.UNDOING)
    PurgePeriod.objects.filter(purge=purge).update(deleted=0)
    assert not correct_sums(purge.pk)
    assert totals_of(purge).deleted == 0


def test_a_restoring_import_is_added_once(mona: User, channel: Channel, purge: Purge) -> None:
    ids = old_ids(40, buckets_ago=3)
    for _ in range(2):
        restore_on_import(channel.pk, bucket_of(ids[0]), ids[:7], moderator=mona, import_id="first")
        assert count_still_deleted(purge) == 60 - 7
        assert not has_wrong_sums(purge.pk)


def test_an_undo_of_what_was_restored_adds_nothing_to_the_purge(mona: User, purge: Purge) -> None:
    # Of the same person it would be the first one, sent twice.
    other = make_user("lena", group="leads")
    request_undo(purge.pk, moderator=other, part=UndoPart(author_ids=(WILMA,)), reason="Appeal accepted")
    run_to_end(purge)
    assert count_still_deleted(purge) == 60
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.UNDONE
    assert count_still_deleted(purge) == 0


def test_imports_that_restore_in_many_channels_at_once_are_all_added(mona: User) -> None:
    channels, ids = [make_channel() for _ in range(8)], old_ids(12)
    for channel in channels:
        write(channel, ids)
    everywhere = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    purge = purge_now(mona, everywhere)
    at_once = threading.Barrier(len(channels))

    def restore(channel: Channel) -> None:
        at_once.wait()
        try:
            for message_id in ids:
                restore_on_import(channel.pk, bucket_of(message_id), [message_id], moderator=mona, import_id="first")
        finally:
            connection.close()

    with ThreadPoolExecutor(len(channels)) as pool:
        list(pool.map(restore, channels))
    assert (totals_of(purge).deleted, count_still_deleted(purge)) == (96, 0)
    assert not has_wrong_sums(purge.pk)
