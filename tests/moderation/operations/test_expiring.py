"""Thirty days after its first quarantined copy a purge can no longer be undone, and shows it."""

import datetime as dt

import pytest
from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import work_on_run
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, Step
from moderation.operations.purging.controls import acts_on
from moderation.operations.purging.listing import list_purges
from moderation.operations.steps.removed_ids import standing_ids
from moderation.operations.undo.expiry import close_purge, list_expired
from moderation.operations.undo.requests import UndoPart, ask_undo, can_be_undone
from tests.moderation.rooms import everything, make_channel, old_ids, purge_now, run_to_end, write


def purged_days_ago(mona: User, days: float, *, count: int = 20) -> Purge:
    channel = make_channel()
    write(channel, old_ids(count))
    purge = purge_now(mona, everything(channel))
    return shift(purge, days)


def shift(purge: Purge, days: float) -> Purge:
    """Move the purge's copies back by some days."""
    moment = postgres_now() - dt.timedelta(days=days)
    Step.objects.filter(purge=purge).update(quarantined_at=moment, counted_at=moment)
    purge.refresh_from_db()
    return purge


def test_a_run_closes_what_is_over_and_leaves_the_rest(mona: User) -> None:
    over, not_yet = purged_days_ago(mona, 30.01), purged_days_ago(mona, 29.99)
    run = JobRun.objects.create(job="expire", due_at=postgres_now(), asked_by=mona)
    ended = work_on_run(run.pk)
    assert ended is not None
    assert ended.state == RunState.DONE
    assert ended.did["closed"] >= 1
    over.refresh_from_db()
    not_yet.refresh_from_db()
    assert (over.state, not_yet.state) == (PurgeState.UNDO_EXPIRED, PurgeState.DONE)
    entry = AuditEntry.objects.get(act="undo_expired", purge=over)
    assert (entry.actor, entry.details) == (None, {"was": "done"})


def test_it_is_refused_an_undo_and_every_other_act(mona: User) -> None:
    purge = purged_days_ago(mona, 31)
    assert close_purge(purge.pk)
    purge.refresh_from_db()
    assert not can_be_undone(purge)
    with pytest.raises(BadInput, match="restored for 30 days"):
        ask_undo(purge.pk, moderator=mona, part=UndoPart())
    assert acts_on(purge) == ()


def test_closing_twice_is_closing_once(mona: User) -> None:
    purge = purged_days_ago(mona, 31)
    assert purge.pk in list_expired()
    assert close_purge(purge.pk)
    assert not close_purge(purge.pk)
    assert purge.pk not in list_expired()
    assert AuditEntry.objects.filter(act="undo_expired", purge=purge).count() == 1


def test_it_stands_for_its_messages_as_before_and_is_listed_as_done(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(20)
    write(channel, ids)
    purge = shift(purge_now(mona, everything(channel)), 31)
    close_purge(purge.pk)
    assert standing_ids(channel.pk, bucket_of(ids[0])) == set(ids)
    listed = list_purges(mona, state="done", channel_id=channel.pk).purges
    assert [one.purge.pk for one in listed] == [purge.pk]


def test_an_undo_that_was_asked_in_time_goes_on_and_what_it_left_is_closed_then(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(200)
    write(channel, ids)
    purge = shift(purge_now(mona, everything(channel)), 29.9)
    ask_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(ids[:50])))
    shift(purge, 30.1)
    assert not close_purge(purge.pk)
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    assert close_purge(purge.pk)
    assert standing_ids(channel.pk, bucket_of(ids[0])) == set(ids[50:])


def test_what_was_wholly_brought_back_has_nothing_to_close(mona: User) -> None:
    purge = purged_days_ago(mona, 29)
    ask_undo(purge.pk, moderator=mona, part=UndoPart())
    assert run_to_end(purge).state == PurgeState.UNDONE
    shift(purge, 31)
    assert purge.pk not in list_expired()
    assert not close_purge(purge.pk)
