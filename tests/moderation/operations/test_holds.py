"""Held messages are kept, with every strategy, for holds placed before the preview, after it or during a step."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.models.users import User
from moderation.domain.outcomes import PurgeOutcome
from moderation.domain.planner import DeleteStrategy
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepState
from moderation.models import AuditEntry, Hold, Purge
from moderation.operations.holds import (
    HoldRequest,
    block_new_holds,
    hold_over_purge,
    lift_hold,
    place_hold,
)
from moderation.operations.lookup.purge_index import find_parts
from moderation.operations.purging.controls import retry_purge
from moderation.operations.steps.claiming import StepLost
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from moderation.store.pace import Pace
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    claim,
    confirm,
    ids_of,
    make_channel,
    old_ids,
    preview,
    recent_ids,
    run_to_end,
    write,
)
from tests.moderation.steps import quarantine_step, stamp_step


@pytest.fixture(autouse=True)
def _release_all_holds() -> Iterator[None]:
    """Lift all holds: one on a user's messages everywhere would affect other tests."""
    yield
    Hold.objects.all().delete()


def everything_in(channel_id: int) -> Selection:
    return Selection(channel_ids=(channel_id,), everything=True)


def hold(actor: User, *, author: int | str = "", channel: int | str = "", message: str = "") -> Hold:
    return place_hold(HoldRequest(str(author), str(channel), message), reason="case 71", actor=actor)


def counts(purge: Purge) -> tuple[int, int, int]:
    total = totals_of(purge)
    assert total.already_gone == total.failed == 0
    return total.deleted, total.held, total.left


def strategies_of(purge: Purge) -> set[str]:
    return set(purge.steps.exclude(strategy="").values_list("strategy", flat=True))


@pytest.mark.parametrize(
    ("ids", "strategy"),
    [(recent_ids(60), DeleteStrategy.ROWS), (old_ids(400), DeleteStrategy.DROP)],
    ids=["of the last hour", "of a sealed bucket"],
)
def test_messages_held_before_the_preview_are_excluded_and_reported(
    mona: User, ids: Sequence[int], strategy: DeleteStrategy
) -> None:
    channel = make_channel()
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    hold(mona, author=WILMA, channel=channel.pk)
    purge = preview(mona, everything_in(channel.pk))
    assert (purge.manifest, purge.held_at_scan) == (len(ids[::2]), len(ids[1::2]))
    confirm(mona, purge)
    run_to_end(purge)
    purge.refresh_from_db()
    assert purge.state == PurgeState.DONE
    assert counts(purge) == (len(ids[::2]), 0, 0)
    assert ids_of(channel, *{bucket_of(one) for one in ids}) == ids[1::2]


@pytest.mark.parametrize("ids", [recent_ids(60), old_ids(60), old_ids(400)], ids=["raid", "rows", "spans"])
def test_messages_held_after_confirmation_are_kept_and_counted_as_held(mona: User, ids: Sequence[int]) -> None:
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
    assert find_parts(ids[1], channel_id=channel.pk)[0].outcome is PurgeOutcome.HELD


def test_a_hold_can_cover_a_whole_channel(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, channel=channel.pk)
    run_to_end(purge)
    purge.refresh_from_db()
    assert counts(purge) == (0, 300, 0)
    assert ids_of(channel, bucket_of(ids[0])) == ids
    assert AuditEntry.objects.filter(purge=purge, action="step_held").count() == 1


def test_a_hold_can_cover_one_message_in_the_middle_of_a_bucket(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, message=f"https://chat.example/channels/{channel.pk}/{ids[100]}")
    run_to_end(purge)
    purge.refresh_from_db()
    assert counts(purge) == (299, 1, 0)
    assert strategies_of(purge) == {DeleteStrategy.RANGES}
    assert ids_of(channel, bucket_of(ids[0])) == [ids[100]]


def test_a_hold_placed_between_reading_and_stamping_is_respected(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    write(channel, [ids[-1] + 1], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(1_000))
    hold(mona, author=WILMA, channel=channel.pk)
    with pytest.raises(StepLost):
        stamp_step(step, kept)
    purge.steps.update(token=None, lease_until=None)
    age_timestamps(channel)
    run_to_end(purge)
    purge.refresh_from_db()
    assert counts(purge) == (300, 1, 0)
    assert ids_of(channel, bucket_of(ids[0])) == [ids[-1] + 1]


def test_placing_a_hold_waits_for_a_step_that_is_being_stamped(mona: User) -> None:
    channel = make_channel()
    placed = threading.Event()

    def place() -> None:
        try:
            hold(mona, channel=channel.pk)
            placed.set()
        finally:
            connection.close()

    with transaction.atomic():
        block_new_holds()
        placing = threading.Thread(target=place)
        placing.start()
        assert not placed.wait(0.5)
    placing.join()
    assert placed.is_set()


def test_held_messages_can_be_deleted_once_the_hold_is_lifted(mona: User, lena: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    placed = hold(mona, author=WILMA, channel=channel.pk)
    run_to_end(purge)
    with pytest.raises(Forbidden):
        lift_hold(placed.pk, actor=mona, reason="The case is closed")
    lift_hold(placed.pk, actor=lena, reason="The case is closed")
    retry_purge(purge.pk, moderator=mona)
    age_timestamps(channel)
    run_to_end(purge)
    purge.refresh_from_db()
    assert purge.state == PurgeState.DONE
    assert counts(purge) == (300, 0, 0)
    assert ids_of(channel, bucket_of(ids[0])) == []


def test_an_undo_restores_only_what_was_deleted(mona: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, author=WILMA, channel=channel.pk)
    run_to_end(purge)
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    total = undo_totals_of(undo)
    assert (total.requested, total.restored) == (150, 150)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_holds_on_a_purge_are_found_by_its_selection(mona: User, lena: User) -> None:
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
        lift_hold(placed.pk, actor=lena, reason="The case is closed")


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (HoldRequest(), BadInput),
        (HoldRequest(author="no-such-user"), BadInput),
        (HoldRequest(message="/channels/1"), BadInput),
        (HoldRequest(author="71", message="/channels/1/2"), BadInput),
        (HoldRequest(channel="1"), NotFound),
    ],
)
def test_an_invalid_hold_is_refused(mona: User, wanted: HoldRequest, error: type[Exception]) -> None:
    before = Hold.objects.count()
    with pytest.raises(error):
        place_hold(wanted, reason="why not", actor=mona)
    assert Hold.objects.count() == before


def test_a_hold_needs_a_reason(mona: User) -> None:
    with pytest.raises(BadInput, match="reason"):
        place_hold(HoldRequest(author="71"), reason="  ", actor=mona)


def test_read_permission_does_not_allow_placing_holds() -> None:
    with pytest.raises(Forbidden):
        hold(make_user("otto", group="operators"), author=VICTOR)


def test_placing_and_lifting_are_audited(mona: User, lena: User) -> None:
    placed = hold(mona, author=VICTOR + 7_000)
    lift_hold(placed.pk, actor=lena, reason="The case is closed")
    lift_hold(placed.pk, actor=lena, reason="The case is closed")
    actions = AuditEntry.objects.filter(details__hold=str(placed.pk)).order_by("id")
    assert [(one.action, one.actor) for one in actions] == [("hold_placed", mona), ("hold_lifted", lena)]


def test_a_held_step_accounts_for_no_message(mona: User) -> None:
    channel, ids = make_channel(), old_ids(120)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything_in(channel.pk)))
    hold(mona, channel=channel.pk)
    run_to_end(purge)
    assert list(purge.steps.values_list("state", flat=True)) == [StepState.HELD]
    with pytest.raises(BadInput, match="did not delete any"):
        request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")


def test_a_form_that_is_sent_twice_at_once_places_one_hold(mona: User, lena: User) -> None:
    channel = make_channel()
    barrier = threading.Barrier(2)

    def place(_number: int) -> int:
        try:
            barrier.wait(timeout=60)
            return hold(mona, author=VICTOR, channel=channel.pk).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(place, range(2))
    assert first == second
    placed = AuditEntry.objects.filter(action="hold_placed", channel_id=channel.pk)
    assert placed.count() == 1
    # Of another person, for another reason, on another channel, and after the first was lifted: each is lifted alone.
    wanted = HoldRequest(str(VICTOR), str(channel.pk))
    others = [hold(lena, author=VICTOR, channel=channel.pk), place_hold(wanted, reason="case 72", actor=mona)]
    lift_hold(first, actor=lena, reason="closed")
    again = hold(mona, author=VICTOR, channel=channel.pk)
    assert len({first, again.pk, *(one.pk for one in others)}) == 4
    assert placed.count() == 4
