"""An approved erasure deletes all copies of the purge on every replica, despite crashes and outages."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel, ChannelLock
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import cassandra
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Erasure, Purge, Step
from moderation.operations.erasure.execution import (
    begin_erasure,
    due_erasures,
    end_deleting,
    erase_channel,
    erase_purge,
)
from moderation.operations.erasure.requests import request_erasure
from moderation.operations.lookup.message_history import history_of_message, quarantined_copy
from moderation.operations.preview.manifest import list_manifest
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from moderation.store.quarantine import INSERT, QuarantineKey
from tests.moderation.channels import (
    VICTOR,
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
from tests.moderation.erasures import chunks_kept, finished_purge, request_and_approve, state_of


def of_both(mona: User, *channels: Channel) -> Purge:
    """Purge several channels in one purge."""
    for one in channels:
        write(one, old_ids(20))
    return purge_now(mona, Selection(channel_ids=tuple(one.pk for one in channels), where=Author((VICTOR,))))


def expire_lease(purge: Purge) -> None:
    """Simulate a killed worker with expired leases."""
    Erasure.objects.filter(purge=purge).update(lease_until=F("lease_until") - dt.timedelta(hours=1))


def test_no_copy_is_left_on_any_replica_or_readable(mona: User, lena: User, ada: User) -> None:
    first, second = make_channel(), make_channel()
    purge = of_both(mona, first, second)
    assert (chunks_kept(purge, first), chunks_kept(purge, second)) == (1, 1)
    request_and_approve(purge, lena, ada)
    assert purge.pk in due_erasures()
    assert erase_purge(purge.pk)
    assert (chunks_kept(purge, first), chunks_kept(purge, second)) == (0, 0)
    erasure = Erasure.objects.get(purge=purge)
    assert (erasure.unreadable_at is not None, erasure.off_disk_at, erasure.channels_left) == (True, None, [])
    assert (state_of(purge), purge.pk in due_erasures()) == (PurgeState.ERASING, False)
    assert (lock_owner(first.pk), lock_owner(second.pk)) == (None, None)
    assert quarantined_copy(mona, history_of_message(mona, first.pk, old_ids(20)[0])) is None
    assert all(entry.message is None for entry in list_manifest(mona, purge).entries)
    # Repeating it changes nothing.
    assert not erase_purge(purge.pk)
    assert AuditEntry.objects.filter(purge=purge, action="erase_unreadable").count() == 1


def test_copies_of_other_purges_are_kept(mona: User, lena: User, ada: User, channel: Channel) -> None:
    purge = finished_purge(mona, channel)
    other = make_channel()
    kept_purge = finished_purge(mona, other)
    request_and_approve(purge, lena, ada)
    assert erase_purge(purge.pk)
    assert (chunks_kept(purge, channel), chunks_kept(kept_purge, other)) == (0, 1)
    undo = request_undo(kept_purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(kept_purge)
    assert undo_totals_of(undo).restored == 20


@pytest.mark.parametrize("half", ["begun", "deleted in one channel", "deleted in both"])
def test_another_worker_continues_after_a_kill(mona: User, lena: User, ada: User, half: str) -> None:
    first, second = make_channel(), make_channel()
    purge = of_both(mona, first, second)
    request_and_approve(purge, lena, ada)
    assert begin_erasure(purge.pk)
    erasure = Erasure.objects.get(purge=purge)
    stamp = erasure.stamp
    for one in {"begun": (), "deleted in one channel": (first,), "deleted in both": (first, second)}[half]:
        erase_channel(erasure, one.pk)
    # No other worker takes it while its lease is valid.
    assert purge.pk not in due_erasures()
    assert not erase_purge(purge.pk)
    expire_lease(purge)
    assert purge.pk in due_erasures()
    assert erase_purge(purge.pk)
    erasure.refresh_from_db()
    assert (erasure.stamp, chunks_kept(purge, first), chunks_kept(purge, second)) == (stamp, 0, 0)
    assert AuditEntry.objects.filter(purge=purge, action="erase_started").count() == 1


def test_a_dead_worker_does_not_keep_the_channel_locked(mona: User, lena: User, ada: User, channel: Channel) -> None:
    purge = finished_purge(mona, channel)
    request_and_approve(purge, lena, ada)
    assert begin_erasure(purge.pk)
    assert lock_channel(channel.pk, job=f"erase:{purge.pk}", lease_seconds=30)
    expire_lease(purge)
    assert erase_purge(purge.pk)
    assert not ChannelLock.objects.filter(channel_id=channel.pk).exists()


def test_an_erasure_is_not_unreadable_before_every_channel_is_done(mona: User, lena: User, ada: User) -> None:
    first, second = make_channel(), make_channel()
    purge = of_both(mona, first, second)
    request_and_approve(purge, lena, ada)
    lock_channel(second.pk, job="purge:7")
    assert not erase_purge(purge.pk)
    assert (chunks_kept(purge, first), chunks_kept(purge, second), end_deleting(purge.pk)) == (0, 1, False)
    waits = Erasure.objects.get(purge=purge)
    assert waits.wait_reason.startswith("Waiting behind purge 7")
    release_channel(second.pk, job="purge:7")
    assert purge.pk in due_erasures()
    assert erase_purge(purge.pk)
    assert (chunks_kept(purge, second), Erasure.objects.get(purge=purge).wait_reason) == (0, "")


def test_copies_written_by_a_stalled_worker_afterwards_are_dead_on_arrival(
    mona: User, lena: User, ada: User, channel: Channel
) -> None:
    purge = finished_purge(mona, channel)
    request_and_approve(purge, lena, ada)
    assert erase_purge(purge.pk)
    place = QuarantineKey(purge.pk, channel.pk, bucket_of(old_ids(20)[0]), postgres_now_us())
    cassandra.execute(INSERT, (*place.values(), 0, 1, 1, 1, b"late"))
    assert chunks_kept(purge, channel) == 0


def found_gone(mona: User, channel: Channel) -> tuple[Purge, Purge]:
    """Purge the same messages twice: the first purge deleted them, the second found them gone and still covers them."""
    write(channel, old_ids(20))
    drafts = [preview(mona, everything(channel)) for _ in range(2)]
    first, second = (run_to_end(confirm(mona, draft)) for draft in drafts)
    assert Step.objects.get(purge=second).already_gone == 20
    return first, second


def test_copies_needed_by_another_purge_are_moved_there_and_reported(
    mona: User, lena: User, ada: User, channel: Channel
) -> None:
    first, second = found_gone(mona, channel)
    request_undo(first.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(first).state == PurgeState.UNDONE
    assert request_and_approve(first, lena, ada).also_kept == {str(second.pk): 20}
    assert erase_purge(first.pk)
    assert chunks_kept(first, channel) == 0
    request_undo(second.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(second).state == PurgeState.UNDONE
    assert ids_of(channel, bucket_of(old_ids(20)[0])) == old_ids(20)


def test_an_erasure_lists_other_purges_that_keep_the_same_messages(
    mona: User, lena: User, ada: User, channel: Channel
) -> None:
    first = finished_purge(mona, channel)
    request_undo(first.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(first)
    withdraw_message(channel.pk, old_ids(20)[0], actor=VICTOR)
    again = run_to_end(confirm(mona, preview(mona, everything(channel))))
    request = request_erasure(again.pk, moderator=lena, reason="request 71")
    assert request.also_kept == {str(first.pk): 19}
    request_and_approve(first, lena, ada)
    assert erase_purge(first.pk)
    assert request_undo(again.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted").pk
