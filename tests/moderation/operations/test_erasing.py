"""Quarantined copies are erased only if two people agree and no hold covers any of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.models import Channel
from moderation.domain.states import ErasureAnswer, PurgeState
from moderation.models import AuditEntry, Erasure, Purge, Step
from moderation.operations.erasure.execution import begin_erasure, erase_purge
from moderation.operations.erasure.requests import approve_erase, ask_erase, open_request, refuse_erase, requests_for
from moderation.operations.holds import Wanted, lift_hold, place_hold
from moderation.operations.purging.controls import acts_on
from moderation.operations.steps.removed_ids import standing_ids
from moderation.operations.undo.expiry import close_purge
from moderation.operations.undo.requests import UndoPart, ask_undo, can_be_undone
from tests.conftest import make_user
from tests.moderation.erasures import approved, kept, removed, state_of
from tests.moderation.operations.test_expiring import shift
from tests.moderation.rooms import confirm, everything, old_ids, preview, run_to_end, write

Refused = Callable[[User, Purge], object]


@pytest.fixture
def purge(mona: User, channel: Channel) -> Purge:
    return removed(mona, channel)


def held(channel: Channel, actor: User) -> int:
    return place_hold(Wanted(channel=str(channel.pk)), reason="case 71", actor=actor).pk


def test_nobody_erases_alone(lena: User, ada: User, purge: Purge, channel: Channel) -> None:
    wish = ask_erase(purge.pk, moderator=lena, reason="request 71")
    with pytest.raises(BadInput, match="Ask another person"):
        approve_erase(purge.pk, wish.pk, moderator=lena)
    assert not erase_purge(purge.pk)
    assert (state_of(purge), kept(purge, channel)) == (PurgeState.DONE, 1)
    approve_erase(purge.pk, wish.pk, moderator=ada)
    assert state_of(purge) == PurgeState.ERASING
    assert approve_erase(purge.pk, wish.pk, moderator=ada).answered_by == ada
    assert AuditEntry.objects.filter(purge=purge, act="erase_approved").count() == 1


@pytest.mark.parametrize("who", ["moderators", "operators", None])
def test_without_the_right_nobody_asks_approves_or_refuses(lena: User, purge: Purge, who: str | None) -> None:
    other = make_user("other", group=who)
    wish = ask_erase(purge.pk, moderator=lena, reason="request 71")
    assert requests_for(other) == []
    for act in (approve_erase, refuse_erase):
        with pytest.raises(Forbidden):
            act(purge.pk, wish.pk, moderator=other)
    with pytest.raises(Forbidden):
        ask_erase(purge.pk, moderator=other, reason="request 72")


@pytest.mark.parametrize(("reason", "words"), [(" \n", "Enter a reason"), ("x" * 1001, "at most 1,000")])
def test_it_takes_a_reason(lena: User, purge: Purge, reason: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        ask_erase(purge.pk, moderator=lena, reason=reason)
    assert open_request(purge) is None


def test_a_wish_is_shown_to_those_who_may_answer_it_and_once_only(lena: User, ada: User, purge: Purge) -> None:
    wish = ask_erase(purge.pk, moderator=lena, reason="request 71")
    with pytest.raises(BadInput, match="already been requested"):
        ask_erase(purge.pk, moderator=ada, reason="request 72")
    assert [listed.purge.pk for listed, asked in requests_for(ada) if asked == wish] == [purge.pk]
    assert wish not in [asked for _, asked in requests_for(lena)]


def test_after_a_no_somebody_may_ask_again(lena: User, ada: User, purge: Purge) -> None:
    first = ask_erase(purge.pk, moderator=lena, reason="request 71")
    refuse_erase(purge.pk, first.pk, moderator=ada)
    with pytest.raises(BadInput, match="already been decided"):
        approve_erase(purge.pk, first.pk, moderator=ada)
    second = ask_erase(purge.pk, moderator=lena, reason="request 72")
    # The requester's own second request.
    refuse_erase(purge.pk, second.pk, moderator=lena)
    assert open_request(purge) is None
    acts = AuditEntry.objects.filter(purge=purge, act__startswith="erase_").order_by("id")
    assert [(entry.act, entry.actor) for entry in acts] == [
        ("erase_asked", lena),
        ("erase_refused", ada),
        ("erase_asked", lena),
        ("erase_refused", lena),
    ]
    assert state_of(purge) == PurgeState.DONE


def test_a_wish_lapses_after_a_day(lena: User, ada: User, purge: Purge) -> None:
    wish = ask_erase(purge.pk, moderator=lena, reason="request 71")
    Purge.objects.filter(pk=purge.pk).update(finished_at=F("finished_at") - dt.timedelta(days=2))
    asked = Erasure.objects.filter(pk=wish.pk)
    asked.update(asked_at=F("asked_at") - dt.timedelta(hours=23, minutes=59))
    assert open_request(purge) == wish
    asked.update(asked_at=F("asked_at") - dt.timedelta(minutes=2))
    assert open_request(purge) is None
    with pytest.raises(BadInput, match="has expired"):
        approve_erase(purge.pk, wish.pk, moderator=ada)
    assert ask_erase(purge.pk, moderator=ada, reason="request 71").answer == ErasureAnswer.NONE


def test_a_wish_lapses_when_the_purge_was_taken_back_since(mona: User, lena: User, ada: User, purge: Purge) -> None:
    wish = ask_erase(purge.pk, moderator=lena, reason="request 71")
    ask_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(old_ids(20)[:5])))
    with pytest.raises(BadInput, match="has expired"):
        approve_erase(purge.pk, wish.pk, moderator=ada)
    with pytest.raises(BadInput, match="while it is undoing"):
        ask_erase(purge.pk, moderator=lena, reason="request 71")
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    with pytest.raises(BadInput, match="has expired"):
        approve_erase(purge.pk, wish.pk, moderator=ada)
    assert approved(purge, lena, ada).was == PurgeState.PARTLY_UNDONE


def test_a_hold_forbids_asking_and_approving(lena: User, ada: User, purge: Purge, channel: Channel) -> None:
    first = held(channel, lena)
    with pytest.raises(BadInput, match="A hold covers some of these messages"):
        ask_erase(purge.pk, moderator=lena, reason="request 71")
    lift_hold(first, actor=lena)
    wish = ask_erase(purge.pk, moderator=lena, reason="request 71")
    second = held(channel, ada)
    with pytest.raises(BadInput, match="A hold covers some of these messages"):
        approve_erase(purge.pk, wish.pk, moderator=ada)
    lift_hold(second, actor=lena)
    assert approve_erase(purge.pk, wish.pk, moderator=ada).answer == ErasureAnswer.APPROVED


def test_a_hold_that_comes_before_the_first_delete_stops_it(
    mona: User, lena: User, ada: User, purge: Purge, channel: Channel
) -> None:
    erasure = approved(purge, lena, ada)
    placed = held(channel, lena)
    assert not erase_purge(purge.pk)
    erasure.refresh_from_db()
    assert (erasure.answer, erasure.stamp, state_of(purge)) == (ErasureAnswer.HELD, None, PurgeState.DONE)
    assert (kept(purge, channel), can_be_undone(purge)) == (1, True)
    assert AuditEntry.objects.filter(purge=purge, act="erase_held").count() == 1
    lift_hold(placed, actor=lena)
    # A request does not revive by itself: both users must confirm it again.
    assert not erase_purge(purge.pk)
    approved(purge, ada, lena)
    assert erase_purge(purge.pk)


def test_a_hold_that_comes_after_the_beginning_is_too_late(
    lena: User, ada: User, purge: Purge, channel: Channel
) -> None:
    approved(purge, lena, ada)
    assert begin_erasure(purge.pk)
    placed = held(channel, lena)
    Erasure.objects.filter(purge=purge).update(lease_until=None)
    assert erase_purge(purge.pk)
    assert kept(purge, channel) == 0
    lift_hold(placed, actor=lena)


def test_what_is_being_erased_offers_no_undo_and_no_other_act(
    mona: User, lena: User, ada: User, purge: Purge, channel: Channel
) -> None:
    approved(purge, lena, ada)
    for _ in range(2):
        state_of(purge)
        assert not can_be_undone(purge)
        assert acts_on(purge) == ()
        with pytest.raises(BadInput, match="cannot be undone"):
            ask_undo(purge.pk, moderator=mona, part=UndoPart())
        with pytest.raises(BadInput, match="cannot be erased while it is erasing"):
            ask_erase(purge.pk, moderator=lena, reason="request 72")
        assert not close_purge(shift(purge, 31).pk)
        shift(purge, 0)
        erase_purge(purge.pk)
    # The purge still accounts for its messages: an import does not restore them.
    assert standing_ids(channel.pk, bucket_of(old_ids(20)[0])) == set(old_ids(20))


def test_only_what_has_ended_and_keeps_something_can_be_erased(mona: User, lena: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    waiting = preview(mona, everything(channel))
    with pytest.raises(BadInput, match="while it is ready"):
        ask_erase(waiting.pk, moderator=lena, reason="request 71")
    confirm(mona, waiting)
    with pytest.raises(BadInput, match="while it is queued"):
        ask_erase(waiting.pk, moderator=lena, reason="request 71")
    Step.objects.filter(purge=waiting).update(quarantined_at=None)
    Purge.objects.filter(pk=waiting.pk).update(state=PurgeState.CANCELLED)
    with pytest.raises(BadInput, match="There are no copies"):
        ask_erase(waiting.pk, moderator=lena, reason="request 71")


def test_after_thirty_days_there_is_nothing_to_ask_for(lena: User, purge: Purge) -> None:
    assert close_purge(shift(purge, 31).pk)
    with pytest.raises(BadInput, match="expire on their own"):
        ask_erase(purge.pk, moderator=lena, reason="request 71")
