"""The list of purges shows the undo deadline of each one as long as an undo is possible."""

import datetime as dt

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.models import Hold, Purge, Step
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging.listing import list_purges
from moderation.operations.selection.summary import ListedPurge
from moderation.operations.undo.requests import UndoPart, request_undo, undo_until, undo_until_without_holds
from tests.moderation.channels import (
    WILMA,
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
from tests.moderation.stored_sums import store_sums


def filled_channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(20))
    return channel


def listed(mona: User, purge: Purge) -> ListedPurge:
    (found,) = (one for one in list_purges(mona).purges if one.purge.pk == purge.pk)
    return found


def test_the_list_and_the_purge_page_show_the_same_deadline(mona: User) -> None:
    purge = purge_now(mona, everything(filled_channel()))
    until = listed(mona, purge).undo_until
    assert until is not None
    assert until == undo_until(purge)


def test_a_hold_that_covers_nothing_deleted_does_not_move_the_deadline(mona: User) -> None:
    channel = filled_channel()
    write(channel, held := old_ids(5, buckets_ago=4), author=WILMA)
    queued = confirm(mona, preview(mona, everything(channel)))
    place_hold(HoldRequest(author=str(WILMA), channel=str(channel.pk)), reason="a court asks", actor=mona)
    purge = run_to_end(queued)
    assert ids_of(channel, bucket_of(held[0])) == held
    until = listed(mona, purge).undo_until
    assert until is not None
    assert until == undo_until_without_holds(purge)
    # Afterwards only messages under a hold can still be restored.
    Step.objects.filter(purge=purge).update(quarantined_at=postgres_now() - dt.timedelta(days=30, minutes=1))
    Hold.objects.update(placed_at=postgres_now() - dt.timedelta(days=1))
    store_sums()
    until = listed(mona, purge).undo_until
    assert until is not None
    assert until > postgres_now()


def test_no_undo_is_offered_after_the_deadline_even_before_the_nightly_close(mona: User) -> None:
    purge = purge_now(mona, everything(filled_channel()))
    Step.objects.filter(purge=purge).update(quarantined_at=postgres_now() - dt.timedelta(days=30, minutes=1))
    store_sums()
    assert listed(mona, purge).undo_until is None


def test_no_undo_is_offered_before_a_delete_or_after_a_full_restore(mona: User) -> None:
    channel = filled_channel()
    assert listed(mona, preview(mona, everything(channel))).undo_until is None
    purge = purge_now(mona, everything(channel))
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert listed(mona, run_to_end(purge)).undo_until is None
