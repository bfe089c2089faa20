"""Thirty days after its first quarantined copy a purge can no longer be undone, and shows it."""

import datetime as dt

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import work_on_run
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, Step
from moderation.operations.erasure.requests import erasure_blocked_reason
from moderation.operations.purging.controls import available_controls, cancel_purge
from moderation.operations.purging.listing import list_purges
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.deleted_ids import deleted_ids
from moderation.operations.undo.expiry import close_purge, list_expired
from moderation.operations.undo.requests import UndoPart, can_be_undone, request_undo
from moderation.store.pace import Pace
from tests.moderation.channels import (
    claim,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)
from tests.moderation.steps import quarantine_step
from tests.moderation.stored_sums import store_sums


def purged_days_ago(mona: User, days: float, *, count: int = 20) -> Purge:
    channel = make_channel()
    write(channel, old_ids(count))
    purge = purge_now(mona, everything(channel))
    return shift(purge, days)


def shift(purge: Purge, days: float) -> Purge:
    """Move the purge's copies back by some days."""
    time = postgres_now() - dt.timedelta(days=days)
    Step.objects.filter(purge=purge).update(quarantined_at=time, counted_at=time)
    store_sums()
    purge.refresh_from_db()
    return purge


def test_a_run_closes_expired_purges_and_leaves_the_rest(mona: User) -> None:
    over, not_yet = purged_days_ago(mona, 30.01), purged_days_ago(mona, 29.99)
    run = JobRun.objects.create(job="expire", due_at=postgres_now(), requested_by=mona)
    ended = work_on_run(run.pk)
    assert ended is not None
    assert ended.state == RunState.DONE
    assert ended.result["closed"] >= 1
    over.refresh_from_db()
    not_yet.refresh_from_db()
    assert (over.state, not_yet.state) == (PurgeState.UNDO_EXPIRED, PurgeState.DONE)
    entry = AuditEntry.objects.get(action="undo_expired", purge=over)
    assert (entry.actor, entry.details) == (None, {"was": "done"})


def test_an_expired_purge_refuses_undo_and_every_other_action(mona: User) -> None:
    purge = purged_days_ago(mona, 31)
    assert close_purge(purge.pk)
    purge.refresh_from_db()
    assert not can_be_undone(purge)
    with pytest.raises(BadInput, match="restored for 30 days"):
        request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert available_controls(purge) == ()


def test_closing_twice_has_no_further_effect(mona: User) -> None:
    purge = purged_days_ago(mona, 31)
    assert purge.pk in list_expired()
    assert close_purge(purge.pk)
    assert not close_purge(purge.pk)
    assert purge.pk not in list_expired()
    assert AuditEntry.objects.filter(action="undo_expired", purge=purge).count() == 1


def test_a_purge_cancelled_before_its_first_delete_expires_with_its_copies(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(150))
    purge = confirm(mona, preview(mona, everything(channel)))
    quarantine_step(claim(purge), pace=Pace(1_000))
    cancel_purge(purge.pk, moderator=mona)
    Step.objects.filter(purge=purge).update(lease_until=postgres_now())
    assert run_purge(purge.pk).state == PurgeState.CANCELLED
    purge.refresh_from_db()
    assert erasure_blocked_reason(purge) == ""
    assert purge.pk not in list_expired()
    assert close_purge(shift(purge, 31).pk)


def test_an_expired_purge_still_accounts_for_its_messages_and_is_listed_by_its_state(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(20)
    write(channel, ids)
    purge = shift(purge_now(mona, everything(channel)), 31)
    close_purge(purge.pk)
    assert deleted_ids(channel.pk, bucket_of(ids[0])) == set(ids)
    listed = list_purges(mona, state="undo_expired", channel_id=channel.pk).purges
    assert [one.purge.pk for one in listed] == [purge.pk]


def test_an_undo_requested_in_time_continues_and_the_rest_is_closed_afterwards(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(200)
    write(channel, ids)
    purge = shift(purge_now(mona, everything(channel)), 29.9)
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(ids[:50])), reason="Appeal accepted")
    shift(purge, 30.1)
    assert not close_purge(purge.pk)
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    assert close_purge(purge.pk)
    assert deleted_ids(channel.pk, bucket_of(ids[0])) == set(ids[50:])


def test_a_fully_restored_purge_is_not_closed(mona: User) -> None:
    purge = purged_days_ago(mona, 29)
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.UNDONE
    shift(purge, 31)
    assert purge.pk not in list_expired()
    assert not close_purge(purge.pk)
