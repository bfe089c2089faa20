"""Held messages are kept, with every strategy, for holds placed before the preview, after it or during a step."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden, NotFound
from moderation.domain.outcomes import Fate
from moderation.domain.planner import Way
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepState
from moderation.models import AuditEntry, Hold, Purge
from moderation.operations.holds import (
    Wanted,
    hold_over_purge,
    lift_hold,
    place_hold,
    take_turns_with_holds,
)
from moderation.operations.lookup.purge_index import find_parts
from moderation.operations.purging.controls import retry_purge
from moderation.operations.purging.execution import stamp_step
from moderation.operations.purging.quarantine import quarantine_step
from moderation.operations.purging.worker import Run
from moderation.operations.steps.claiming import claim_step
from moderation.operations.steps.totals import sum_of
from moderation.operations.undo.requests import UndoPart, ask_undo, sum_of_undo
from moderation.store.pace import Pace
from tests.conftest import make_user
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    confirm,
    ids_of,
    let_stamps_age,
    make_channel,
    old_ids,
    preview,
    recent_ids,
    run_to_end,
    write,
)


@pytest.fixture(autouse=True)
def _nothing_stays_held() -> Iterator[None]:
    """Lift all holds: one on a user's messages everywhere would affect other tests."""
    yield
    Hold.objects.all().delete()


def everything_in(channel_id: int) -> Selection:
    return Selection(channel_ids=(channel_id,), everything=True)


def hold(actor: User, *, author: int | str = "", channel: int | str = "", message: str = "") -> Hold:
    return place_hold(Wanted(str(author), str(channel), message), reason="case 71", actor=actor)


def counts(purge: Purge) -> tuple[int, int, int]:
    total = sum_of(purge)
    assert total.already_gone == total.failed == 0
    return total.deleted, total.held, total.left


def ways_of(purge: Purge) -> set[str]:
    return set(purge.steps.exclude(how="").values_list("how", flat=True))


@pytest.mark.parametrize(
    ("ids", "way"),
    [(recent_ids(60), Way.ROWS), (old_ids(400), Way.DROP)],
    ids=["of the last hour", "of a sealed bucket"],
)
def test_what_is_held_before_the_preview_is_not_of_it_and_is_said(mona: User, ids: Sequence[int], way: Way) -> None:
    channel = make_channel()
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    hold(mona, author=WILMA, channel=channel.pk)
    purge = preview(mona, everything_in(channel.pk))
    assert (purge.manifest, purge.held_back) == (len(ids[::2]), len(ids[1::2]))
    confirm(mona, purge)
    run_to_end(purge)
    purge.refresh_from_db()
    assert purge.state == PurgeState.DONE
    assert counts(purge) == (len(ids[::2]), 0, 0)
    assert ids_of(channel, *{bucket_of(one) for one in ids}) == ids[1::2]


@pytest.mark.parametrize("ids", [recent_ids(60), old_ids(60), old_ids(400)], ids=["raid", "rows", "spans"])
def test_what_is_held_after_confirming_stays_and_is_counted_as_held(mona: User, ids: Sequence[int]) -> None:
    channel = make_channel()
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, author=WILMA)
    run_to_end(purge)
    purge.refresh_from_db()
    assert purge.state == PurgeState.DONE_WITH_FAILURES
    assert counts(purge) == (len(ids[::2]), len(ids[1::2]), 0)
    assert ids_of(channel, *{bucket_of(one) for one in ids}) == ids[1::2]
    assert find_parts(ids[1], channel_id=channel.pk)[0].fate is Fate.HELD


def test_a_whole_channel_is_held(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, channel=channel.pk)
    run_to_end(purge)
    purge.refresh_from_db()
    assert counts(purge) == (0, 300, 0)
    assert ids_of(channel, bucket_of(ids[0])) == ids
    assert AuditEntry.objects.filter(purge=purge, act="step_held").count() == 1


def test_one_message_is_held_in_the_middle_of_a_bucket(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, message=f"https://chat.example/channels/{channel.pk}/{ids[100]}")
    run_to_end(purge)
    purge.refresh_from_db()
    assert counts(purge) == (299, 1, 0)
    assert ways_of(purge) == {Way.RANGES}
    assert ids_of(channel, bucket_of(ids[0])) == [ids[100]]


def test_a_hold_that_comes_between_reading_and_stamping_is_seen(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    write(channel, [ids[-1] + 1], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    run = Run(purge.pk)
    step = claim_step(purge.pk, token=run.token)
    assert step is not None
    kept = quarantine_step(step, pace=Pace(1_000))
    hold(mona, author=WILMA, channel=channel.pk)
    with pytest.raises(Exception, match="a hold was placed meanwhile"):
        stamp_step(step, kept)
    purge.steps.update(token=None, lease_until=None)
    let_stamps_age(channel)
    run_to_end(purge)
    purge.refresh_from_db()
    assert counts(purge) == (300, 1, 0)
    assert ids_of(channel, bucket_of(ids[0])) == [ids[-1] + 1]


def test_who_places_a_hold_waits_for_a_step_that_is_being_stamped(mona: User) -> None:
    channel = make_channel()
    placed = threading.Event()

    def place() -> None:
        try:
            hold(mona, channel=channel.pk)
            placed.set()
        finally:
            connection.close()

    with transaction.atomic():
        take_turns_with_holds()
        placing = threading.Thread(target=place)
        placing.start()
        assert not placed.wait(0.5)
    placing.join()
    assert placed.is_set()


def test_once_it_is_lifted_what_was_held_can_be_removed_too(mona: User, lena: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    placed = hold(mona, author=WILMA, channel=channel.pk)
    run_to_end(purge)
    with pytest.raises(Forbidden):
        lift_hold(placed.pk, actor=mona)
    lift_hold(placed.pk, actor=lena)
    retry_purge(purge.pk, moderator=mona)
    let_stamps_age(channel)
    run_to_end(purge)
    purge.refresh_from_db()
    assert purge.state == PurgeState.DONE
    assert counts(purge) == (300, 0, 0)
    assert ids_of(channel, bucket_of(ids[0])) == []


def test_an_undo_of_it_brings_back_what_went_and_nothing_else(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, author=WILMA, channel=channel.pk)
    run_to_end(purge)
    undo = ask_undo(purge.pk, moderator=mona, part=UndoPart())
    run_to_end(purge)
    total = sum_of_undo(undo)
    assert (total.asked, total.restored) == (150, 150)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_hold_over_a_purge_is_found_by_what_it_chose(mona: User, lena: User) -> None:
    channel, ids = make_channel(), old_ids(120)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    run_to_end(purge)
    assert hold_over_purge(purge) is None
    hold(mona, author=WILMA, channel=channel.pk)
    assert hold_over_purge(purge) is None
    for wanted in (
        {"author": VICTOR, "channel": channel.pk},
        {"channel": channel.pk},
        {"message": f"/channels/{channel.pk}/{ids[3]}"},
    ):
        placed = hold(mona, **wanted)
        assert hold_over_purge(purge) == placed
        lift_hold(placed.pk, actor=lena)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (Wanted(), BadInput),
        (Wanted(author="nobody"), BadInput),
        (Wanted(message="/channels/1"), BadInput),
        (Wanted(author="71", message="/channels/1/2"), BadInput),
        (Wanted(channel="1"), NotFound),
    ],
)
def test_what_cannot_be_meant_is_refused(mona: User, wanted: Wanted, error: type[Exception]) -> None:
    before = Hold.objects.count()
    with pytest.raises(error):
        place_hold(wanted, reason="why not", actor=mona)
    assert Hold.objects.count() == before


def test_a_hold_wants_a_reason(mona: User) -> None:
    with pytest.raises(BadInput, match="reason"):
        place_hold(Wanted(author="71"), reason="  ", actor=mona)


def test_who_only_reads_places_none() -> None:
    with pytest.raises(Forbidden):
        hold(make_user("otto", group="operators"), author=VICTOR)


def test_placing_and_lifting_are_of_the_audit(mona: User, lena: User) -> None:
    placed = hold(mona, author=VICTOR + 7_000)
    lift_hold(placed.pk, actor=lena)
    lift_hold(placed.pk, actor=lena)
    acts = AuditEntry.objects.filter(details__hold=str(placed.pk)).order_by("id")
    assert [(one.act, one.actor) for one in acts] == [("hold_placed", mona), ("hold_lifted", lena)]


def test_a_held_step_stands_for_nothing(mona: User) -> None:
    channel, ids = make_channel(), old_ids(120)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, channel=channel.pk)
    run_to_end(purge)
    assert list(purge.steps.values_list("state", flat=True)) == [StepState.HELD]
    with pytest.raises(BadInput, match="did not delete any"):
        ask_undo(purge.pk, moderator=mona, part=UndoPart())
