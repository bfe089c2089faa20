"""An approved erasure deletes all copies of the purge on every replica, despite crashes and outages."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel, ChannelLock
from chatstore.operations.coordination.channel_lock import hold_channel, holder_of, release_channel
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
from moderation.operations.erasure.requests import ask_erase
from moderation.operations.lookup.message_history import kept_copy, story_of
from moderation.operations.preview.manifest import list_manifest
from moderation.operations.undo.requests import UndoPart, ask_undo, sum_of_undo
from moderation.store.quarantine import INSERT, Place
from tests.moderation.erasures import approved, kept, removed, state_of
from tests.moderation.rooms import (
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


def of_both(mona: User, *channels: Channel) -> Purge:
    """Purge several channels in one purge."""
    for one in channels:
        write(one, old_ids(20))
    return purge_now(mona, Selection(channel_ids=tuple(one.pk for one in channels), where=Author((VICTOR,))))


def let_die(purge: Purge) -> None:
    """Simulate a killed worker with expired leases."""
    Erasure.objects.filter(purge=purge).update(lease_until=F("lease_until") - dt.timedelta(hours=1))


def test_nothing_of_it_is_left_on_any_replica_and_nobody_reads_it(mona: User, lena: User, ada: User) -> None:
    first, second = make_channel(), make_channel()
    purge = of_both(mona, first, second)
    assert (kept(purge, first), kept(purge, second)) == (1, 1)
    approved(purge, lena, ada)
    assert purge.pk in due_erasures()
    assert erase_purge(purge.pk)
    assert (kept(purge, first), kept(purge, second)) == (0, 0)
    erasure = Erasure.objects.get(purge=purge)
    assert (erasure.unreadable_at is not None, erasure.off_disk_at, erasure.channels_left) == (True, None, [])
    assert (state_of(purge), purge.pk in due_erasures()) == (PurgeState.ERASING, False)
    assert (holder_of(first.pk), holder_of(second.pk)) == (None, None)
    assert kept_copy(mona, story_of(mona, first.pk, old_ids(20)[0])) is None
    assert all(entry.message is None for entry in list_manifest(mona, purge).entries)
    # Repeating it changes nothing.
    assert not erase_purge(purge.pk)
    assert AuditEntry.objects.filter(purge=purge, act="erase_unreadable").count() == 1


def test_what_other_purges_keep_stays(mona: User, lena: User, ada: User, channel: Channel) -> None:
    purge = removed(mona, channel)
    other = make_channel()
    stays = removed(mona, other)
    approved(purge, lena, ada)
    assert erase_purge(purge.pk)
    assert (kept(purge, channel), kept(stays, other)) == (0, 1)
    undo = ask_undo(stays.pk, moderator=mona, part=UndoPart())
    run_to_end(stays)
    assert sum_of_undo(undo).restored == 20


@pytest.mark.parametrize("half", ["begun", "deleted in one channel", "deleted in both"])
def test_a_worker_that_is_killed_in_between_is_followed_by_another(
    mona: User, lena: User, ada: User, half: str
) -> None:
    first, second = make_channel(), make_channel()
    purge = of_both(mona, first, second)
    approved(purge, lena, ada)
    assert begin_erasure(purge.pk)
    erasure = Erasure.objects.get(purge=purge)
    stamp = erasure.stamp
    for one in {"begun": (), "deleted in one channel": (first,), "deleted in both": (first, second)}[half]:
        erase_channel(erasure, one.pk)
    # No other worker takes it while its lease is valid.
    assert purge.pk not in due_erasures()
    assert not erase_purge(purge.pk)
    let_die(purge)
    assert purge.pk in due_erasures()
    assert erase_purge(purge.pk)
    erasure.refresh_from_db()
    assert (erasure.stamp, kept(purge, first), kept(purge, second)) == (stamp, 0, 0)
    assert AuditEntry.objects.filter(purge=purge, act="erase_begun").count() == 1


def test_one_that_died_holding_the_channel_keeps_nobody_out(
    mona: User, lena: User, ada: User, channel: Channel
) -> None:
    purge = removed(mona, channel)
    approved(purge, lena, ada)
    assert begin_erasure(purge.pk)
    assert hold_channel(channel.pk, job=f"erase:{purge.pk}", lease_seconds=30)
    let_die(purge)
    assert erase_purge(purge.pk)
    assert not ChannelLock.objects.filter(channel_id=channel.pk).exists()


def test_it_is_not_called_unreadable_before_every_channel_is_done(mona: User, lena: User, ada: User) -> None:
    first, second = make_channel(), make_channel()
    purge = of_both(mona, first, second)
    approved(purge, lena, ada)
    hold_channel(second.pk, job="purge:7")
    assert not erase_purge(purge.pk)
    assert (kept(purge, first), kept(purge, second), end_deleting(purge.pk)) == (0, 1, False)
    waits = Erasure.objects.get(purge=purge)
    assert waits.wait_reason.startswith("behind another job (purge 7)")
    release_channel(second.pk, job="purge:7")
    assert purge.pk in due_erasures()
    assert erase_purge(purge.pk)
    assert (kept(purge, second), Erasure.objects.get(purge=purge).wait_reason) == (0, "")


def test_what_a_worker_that_stood_still_keeps_afterwards_is_dead_when_it_comes(
    mona: User, lena: User, ada: User, channel: Channel
) -> None:
    purge = removed(mona, channel)
    approved(purge, lena, ada)
    assert erase_purge(purge.pk)
    place = Place(purge.pk, channel.pk, bucket_of(old_ids(20)[0]), postgres_now_us())
    cassandra.execute(INSERT, (*place.key(), 0, 1, 1, 1, b"late"))
    assert kept(purge, channel) == 0


def found_gone(mona: User, channel: Channel) -> tuple[Purge, Purge]:
    """Purge the same messages twice: the first purge deleted them, the second found them gone and still covers them."""
    write(channel, old_ids(20))
    drafts = [preview(mona, everything(channel)) for _ in range(2)]
    first, second = (run_to_end(confirm(mona, draft)) for draft in drafts)
    assert Step.objects.get(purge=second).already_gone == 20
    return first, second


def test_what_another_purge_needs_for_its_own_undo_is_kept_with_that_one_and_told(
    mona: User, lena: User, ada: User, channel: Channel
) -> None:
    first, second = found_gone(mona, channel)
    ask_undo(first.pk, moderator=mona, part=UndoPart())
    assert run_to_end(first).state == PurgeState.UNDONE
    assert approved(first, lena, ada).also_kept == {str(second.pk): 20}
    assert erase_purge(first.pk)
    assert kept(first, channel) == 0
    ask_undo(second.pk, moderator=mona, part=UndoPart())
    assert run_to_end(second).state == PurgeState.UNDONE
    assert ids_of(channel, bucket_of(old_ids(20)[0])) == old_ids(20)


def test_it_says_which_other_purges_keep_the_same_messages(mona: User, lena: User, ada: User, channel: Channel) -> None:
    first = removed(mona, channel)
    ask_undo(first.pk, moderator=mona, part=UndoPart())
    run_to_end(first)
    withdraw_message(channel.pk, old_ids(20)[0], actor=VICTOR)
    again = run_to_end(confirm(mona, preview(mona, everything(channel))))
    wish = ask_erase(again.pk, moderator=lena, reason="request 71")
    assert wish.also_kept == {str(first.pk): 19}
    approved(first, lena, ada)
    assert erase_purge(first.pk)
    assert ask_undo(again.pk, moderator=mona, part=UndoPart()).pk
