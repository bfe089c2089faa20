"""Copies of purged messages under a hold are kept until the hold is lifted, and can be restored until then."""

import datetime as dt

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_of
from chatstore.domain.runs import ENDED, RunState
from chatstore.models import Channel, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.jobs.runs import work_on_run
from chatstore.store import cassandra
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Hold, Purge, Step
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.undo.expiry import renew_held
from moderation.operations.undo.requests import UndoPart, can_be_undone, request_undo, undo_totals_of, undo_until
from moderation.store.quarantine import quarantine_attempts
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    choose,
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

PAUSED = "The undo period of deleted messages that it covers is paused until"

EXPIRED = "The undo period has expired."

ERASE_ATTEMPT = (
    "DELETE FROM quarantine USING TIMESTAMP ? WHERE purge_id = ? AND channel_id = ? AND bucket = ? AND attempt = ?"
)


@pytest.fixture
def ids(channel: Channel) -> list[int]:
    """Write messages of Victor and Wilma in turns."""
    found = old_ids(300)
    write(channel, found[::2])
    write(channel, found[1::2], author=WILMA)
    return found


def hold(channel: Channel, moderator: User) -> Hold:
    return place_hold(HoldRequest(author=str(VICTOR), channel=str(channel.pk)), reason="a court asks", actor=moderator)


def shift(purge: Purge, *, days: float, placed: Hold, placed_days_ago: float) -> None:
    """Move the purge and the hold back by some days."""
    now = postgres_now()
    Step.objects.filter(purge=purge).update(quarantined_at=now - dt.timedelta(days=days))
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(created_at=now - dt.timedelta(days=days))
    Hold.objects.filter(pk=placed.pk).update(placed_at=now - dt.timedelta(days=placed_days_ago))
    purge.refresh_from_db()


def expire_run() -> dict[str, int]:
    JobRun.objects.filter(job="expire").exclude(state__in=ENDED).delete()
    run = work_on_run(JobRun.objects.create(job="expire", due_at=postgres_now()).pk)
    assert run is not None
    assert run.state == RunState.DONE
    return dict(run.result)


def expire_first_copies(purge: Purge) -> None:
    for step in Step.objects.filter(purge=purge):
        place = (purge.pk, step.channel_id, step.bucket, step.read_stamp)
        cassandra.execute(ERASE_ATTEMPT, (postgres_now_us(), *place))


def test_held_messages_can_be_restored_after_thirty_days_and_the_rest_is_gone(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    shift(purge, days=29, placed=hold(channel, mona), placed_days_ago=1)
    expire_run()
    assert Step.objects.get(purge=purge).renewed_at is not None
    shift(purge, days=59, placed=Hold.objects.latest("id"), placed_days_ago=31)
    expire_first_copies(purge)
    expire_run()
    purge.refresh_from_db()
    assert (purge.state, can_be_undone(purge)) == (PurgeState.DONE, True)
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    total = undo_totals_of(undo)
    assert (total.requested, total.restored) == (150, 150)
    assert ids_of(channel, bucket_of(ids[0])) == ids[::2]


def test_the_undo_period_continues_when_the_hold_is_lifted(
    mona: User, lena: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    placed = hold(channel, mona)
    shift(purge, days=40, placed=placed, placed_days_ago=30)
    lift_hold(placed.pk, actor=lena, reason="The case is closed")
    until = undo_until(purge)
    assert until is not None
    # Ten of the thirty days had passed when the hold was placed.
    assert abs(until - postgres_now() - dt.timedelta(days=20)) < dt.timedelta(minutes=10)
    assert undo_until(purge) == until


def test_copies_are_renewed_at_half_their_lifetime_and_not_every_night(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    shift(purge, days=14, placed=hold(channel, mona), placed_days_ago=1)
    before = renewed(purge)
    assert before is None
    renew_held()
    assert renewed(purge) is None
    shift(purge, days=16, placed=Hold.objects.latest("id"), placed_days_ago=3)
    renew_held()
    once = renewed(purge)
    assert once is not None
    renew_held()
    assert renewed(purge) == once


def renewed(purge: Purge) -> dt.datetime | None:
    return Step.objects.get(purge=purge).renewed_at


def test_copies_left_by_another_purge_do_not_delay_the_renewal(mona: User, channel: Channel, ids: list[int]) -> None:
    """Copies of the other purge are newer than the purge's own, which would expire before the next renewal."""
    drafts = [preview(mona, choose(channel.pk, before_id=ids[100])), preview(mona, everything(channel))]
    first = run_to_end(confirm(mona, drafts[0]))
    age_timestamps(channel)
    purge = run_to_end(confirm(mona, drafts[1]))
    shift(purge, days=20, placed=hold(channel, mona), placed_days_ago=10)
    request_undo(first.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(first)
    before = quarantine_attempts(purge.pk, channel.pk, bucket_of(ids[0]))
    assert len(before) > 1
    renew_held()
    assert len(quarantine_attempts(purge.pk, channel.pk, bucket_of(ids[0]))) == len(before) + 1


def test_a_later_hold_renews_its_copies_even_after_an_earlier_renewal(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    shift(purge, days=29, placed=hold(channel, mona), placed_days_ago=1)
    assert renew_held() == 150
    place_hold(HoldRequest(author=str(WILMA), channel=str(channel.pk)), reason="another court asks", actor=mona)
    assert renew_held() == 300
    assert renew_held() == 0


def test_a_purge_without_a_hold_is_closed(mona: User, channel: Channel, ids: list[int]) -> None:
    other = make_channel()
    write(other, old_ids(20))
    free = purge_now(mona, everything(other))
    shift(free, days=31, placed=hold(channel, mona), placed_days_ago=10)
    expire_run()
    free.refresh_from_db()
    assert free.state == PurgeState.UNDO_EXPIRED


def test_placing_a_hold_renews_copies_at_once(mona: User, channel: Channel) -> None:
    JobRun.objects.filter(job="expire").exclude(state__in=ENDED).delete()
    hold(channel, mona)
    assert JobRun.objects.filter(job="expire").exclude(state__in=ENDED).count() == 1
    JobRun.objects.filter(job="expire").exclude(state__in=ENDED).delete()


def test_the_page_shows_that_the_undo_stays_available(
    client: Client, mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    hold(channel, mona)
    client.force_login(mona)
    page = client.get(f"/purges/{purge.pk}/").content.decode()
    assert PAUSED in " ".join(page.split())


@pytest.mark.parametrize("what", ["author", "message", "channel"])
def test_the_page_of_a_purge_whose_held_messages_were_kept_names_no_hold(
    client: Client, mona: User, channel: Channel, ids: list[int], what: str
) -> None:
    other = make_channel()
    write(other, old_ids(20))
    both = Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR, WILMA)))
    requests = {
        "author": HoldRequest(author=str(VICTOR), channel=str(channel.pk)),
        "message": HoldRequest(message=f"/channels/{channel.pk}/{ids[7]}/"),
        "channel": HoldRequest(channel=str(channel.pk)),
    }
    queued = confirm(mona, preview(mona, both))
    place_hold(requests[what], reason="a court asks", actor=mona)
    purge = run_to_end(queued)
    client.force_login(mona)
    page = " ".join(client.get(f"/purges/{purge.pk}/").content.decode().split())
    assert "You can restore the deleted messages until" in page
    assert PAUSED not in page
    # A later one covers some that were deleted, too.
    place_hold(HoldRequest(channel=str(other.pk)), reason="another court asks", actor=mona)
    page = " ".join(client.get(f"/purges/{purge.pk}/").content.decode().split())
    assert PAUSED in page


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize("is_lifted", [False, True])
def test_an_expired_undo_period_names_only_holds_that_may_cover_deleted_messages(
    client: Client, mona: User, lena: User, channel: Channel, is_lifted: bool
) -> None:
    queued = confirm(mona, preview(mona, everything(channel)))
    kept = hold(channel, mona)
    purge = run_to_end(queued)
    shift(purge, days=40, placed=kept, placed_days_ago=41)
    covering = place_hold(HoldRequest(author=str(WILMA), channel=str(channel.pk)), reason="another", actor=mona)
    Hold.objects.filter(pk=covering.pk).update(placed_at=postgres_now() - dt.timedelta(days=39))
    if is_lifted:
        for placed in (kept, covering):
            lift_hold(placed.pk, actor=lena, reason="The case is closed")
    client.force_login(mona)
    url = f"/purges/{purge.pk}/"
    page = " ".join(client.get(url).content.decode().split())
    verb = "were covered" if is_lifted else "covered"
    assert f"{EXPIRED} Only messages {'that ' * is_lifted}{verb} by a hold can still be restored" in page
    assert "Restore 150 messages" in page
    covering.delete()
    page = " ".join(client.get(url).content.decode().split())
    assert EXPIRED in page
    assert f"{EXPIRED} Only" not in page
    assert "Restore 150 messages" not in page
