"""Quarantined copies are erased only if two people agree and no hold covers any of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.roles import Role
from chatstore.models import Channel, RoleGrant
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation.domain.states import ErasureDecision, PurgeState
from moderation.models import AuditEntry, Erasure, Purge, Step
from moderation.operations.erasure.execution import begin_erasure, erase_purge
from moderation.operations.erasure.requests import (
    approve_erasure,
    open_request,
    open_requests,
    reject_erasure,
    request_erasure,
)
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.purging.controls import available_controls
from moderation.operations.steps.deleted_ids import deleted_ids
from moderation.operations.undo.expiry import close_purge
from moderation.operations.undo.requests import UndoPart, can_be_undone, request_undo
from tests.conftest import make_user
from tests.moderation.channels import confirm, everything, old_ids, preview, run_to_end, write
from tests.moderation.erasures import chunks_kept, finished_purge, request_and_approve, state_of
from tests.moderation.operations.test_expiry import shift

Refused = Callable[[User, Purge], object]


@pytest.fixture
def purge(mona: User, channel: Channel) -> Purge:
    return finished_purge(mona, channel)


def held(channel: Channel, actor: User) -> int:
    return place_hold(HoldRequest(channel=str(channel.pk)), reason="case 71", actor=actor).pk


def test_an_erasure_needs_two_people(lena: User, ada: User, purge: Purge, channel: Channel) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    with pytest.raises(BadInput, match="Ask another person"):
        approve_erasure(purge.pk, request.pk, moderator=lena)
    assert not erase_purge(purge.pk)
    assert (state_of(purge), chunks_kept(purge, channel)) == (PurgeState.DONE, 1)
    approve_erasure(purge.pk, request.pk, moderator=ada)
    assert state_of(purge) == PurgeState.ERASING
    assert approve_erasure(purge.pk, request.pk, moderator=ada).decided_by == ada
    assert AuditEntry.objects.filter(purge=purge, action="erase_approved").count() == 1


@pytest.mark.parametrize("end", ["role", "account"])
def test_the_request_of_a_person_who_may_not_erase_any_more_cannot_be_approved(
    lena: User, ada: User, purge: Purge, end: str
) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    if end == "role":
        RoleGrant.objects.filter(account=lena, role=Role.LEAD).update(taken_at=ClockTimestamp())
    else:
        User.objects.filter(pk=lena.pk).update(is_active=False)
    with pytest.raises(BadInput, match="may not permanently delete these copies any more"):
        approve_erasure(purge.pk, request.pk, moderator=ada)
    assert state_of(purge) == PurgeState.DONE
    reject_erasure(purge.pk, request.pk, moderator=ada)
    assert request_and_approve(purge, make_user("lea", group="leads"), ada).decision == ErasureDecision.APPROVED


@pytest.mark.parametrize("who", ["moderators", "operators", None])
def test_requesting_approving_and_refusing_need_the_permission(lena: User, purge: Purge, who: str | None) -> None:
    other = make_user("other", group=who)
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    assert open_requests(other) == []
    for action in (approve_erasure, reject_erasure):
        with pytest.raises(Forbidden):
            action(purge.pk, request.pk, moderator=other)
    with pytest.raises(Forbidden):
        request_erasure(purge.pk, moderator=other, reason="request 72")


@pytest.mark.parametrize(("reason", "message"), [(" \n", "Enter a reason"), ("x" * 1001, "at most 1,000")])
def test_an_erasure_request_needs_a_reason(lena: User, purge: Purge, reason: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        request_erasure(purge.pk, moderator=lena, reason=reason)
    assert open_request(purge) is None


def test_a_request_is_shown_only_to_those_who_may_decide_it(lena: User, ada: User, purge: Purge) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    with pytest.raises(BadInput, match="already been requested"):
        request_erasure(purge.pk, moderator=ada, reason="request 72")
    assert [one.purge.pk for one in open_requests(ada) if one == request] == [purge.pk]
    assert request not in open_requests(lena)


def test_a_refused_erasure_can_be_requested_again(lena: User, ada: User, purge: Purge) -> None:
    first = request_erasure(purge.pk, moderator=lena, reason="request 71")
    reject_erasure(purge.pk, first.pk, moderator=ada)
    with pytest.raises(BadInput, match="already been decided"):
        approve_erasure(purge.pk, first.pk, moderator=ada)
    second = request_erasure(purge.pk, moderator=lena, reason="request 72")
    # The requester's own second request.
    reject_erasure(purge.pk, second.pk, moderator=lena)
    assert open_request(purge) is None
    actions = AuditEntry.objects.filter(purge=purge, action__startswith="erase_").order_by("id")
    assert [(entry.action, entry.actor) for entry in actions] == [
        ("erase_requested", lena),
        ("erase_rejected", ada),
        ("erase_requested", lena),
        ("erase_rejected", lena),
    ]
    assert state_of(purge) == PurgeState.DONE


def test_a_request_expires_after_a_day(lena: User, ada: User, purge: Purge) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    Purge.objects.filter(pk=purge.pk).update(finished_at=F("finished_at") - dt.timedelta(days=2))
    stored = Erasure.objects.filter(pk=request.pk)
    stored.update(requested_at=F("requested_at") - dt.timedelta(hours=23, minutes=59))
    assert open_request(purge) == request
    stored.update(requested_at=F("requested_at") - dt.timedelta(minutes=2))
    assert open_request(purge) is None
    with pytest.raises(BadInput, match="has expired"):
        approve_erasure(purge.pk, request.pk, moderator=ada)
    assert request_erasure(purge.pk, moderator=ada, reason="request 71").decision == ErasureDecision.NONE


def test_a_request_expires_when_the_purge_is_undone(mona: User, lena: User, ada: User, purge: Purge) -> None:
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    request_undo(purge.pk, moderator=mona, part=UndoPart(message_ids=tuple(old_ids(20)[:5])), reason="Appeal accepted")
    with pytest.raises(BadInput, match="has expired"):
        approve_erasure(purge.pk, request.pk, moderator=ada)
    with pytest.raises(BadInput, match="present state: restoring"):
        request_erasure(purge.pk, moderator=lena, reason="request 71")
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE
    with pytest.raises(BadInput, match="has expired"):
        approve_erasure(purge.pk, request.pk, moderator=ada)
    assert request_and_approve(purge, lena, ada).previous_state == PurgeState.PARTLY_UNDONE


def test_a_hold_forbids_requesting_and_approving(lena: User, ada: User, purge: Purge, channel: Channel) -> None:
    first = held(channel, lena)
    with pytest.raises(BadInput, match="A hold covers some of these messages"):
        request_erasure(purge.pk, moderator=lena, reason="request 71")
    lift_hold(first, actor=lena, reason="The case is closed")
    request = request_erasure(purge.pk, moderator=lena, reason="request 71")
    second = held(channel, ada)
    with pytest.raises(BadInput, match="A hold covers some of these messages"):
        approve_erasure(purge.pk, request.pk, moderator=ada)
    lift_hold(second, actor=lena, reason="The case is closed")
    assert approve_erasure(purge.pk, request.pk, moderator=ada).decision == ErasureDecision.APPROVED


def test_a_hold_placed_before_the_first_delete_stops_it(
    mona: User, lena: User, ada: User, purge: Purge, channel: Channel
) -> None:
    erasure = request_and_approve(purge, lena, ada)
    placed = held(channel, lena)
    assert not erase_purge(purge.pk)
    erasure.refresh_from_db()
    assert (erasure.decision, erasure.stamp, state_of(purge)) == (ErasureDecision.HELD, None, PurgeState.DONE)
    assert (chunks_kept(purge, channel), can_be_undone(purge)) == (1, True)
    assert AuditEntry.objects.filter(purge=purge, action="erase_held").count() == 1
    lift_hold(placed, actor=lena, reason="The case is closed")
    # A blocked request does not continue by itself: both users must confirm it again.
    assert not erase_purge(purge.pk)
    request_and_approve(purge, ada, lena)
    assert erase_purge(purge.pk)


def test_a_hold_placed_after_the_start_is_too_late(lena: User, ada: User, purge: Purge, channel: Channel) -> None:
    request_and_approve(purge, lena, ada)
    assert begin_erasure(purge.pk)
    placed = held(channel, lena)
    Erasure.objects.filter(purge=purge).update(lease_until=None)
    assert erase_purge(purge.pk)
    assert chunks_kept(purge, channel) == 0
    lift_hold(placed, actor=lena, reason="The case is closed")


def test_a_purge_being_erased_offers_no_undo_and_no_other_action(
    mona: User, lena: User, ada: User, purge: Purge, channel: Channel
) -> None:
    request_and_approve(purge, lena, ada)
    for _ in range(2):
        state_of(purge)
        assert not can_be_undone(purge)
        assert available_controls(purge) == ()
        with pytest.raises(BadInput, match="cannot be undone"):
            request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
        with pytest.raises(
            BadInput, match="cannot be permanently deleted in its present state: being permanently deleted"
        ):
            request_erasure(purge.pk, moderator=lena, reason="request 72")
        assert not close_purge(shift(purge, 31).pk)
        shift(purge, 0)
        erase_purge(purge.pk)
    # The purge still accounts for its messages: an import does not restore them.
    assert deleted_ids(channel.pk, bucket_of(old_ids(20)[0])) == set(old_ids(20))


def test_only_a_finished_purge_with_quarantined_copies_can_be_erased(mona: User, lena: User, channel: Channel) -> None:
    write(channel, old_ids(20))
    waiting = preview(mona, everything(channel))
    with pytest.raises(BadInput, match="present state: waiting for confirmation"):
        request_erasure(waiting.pk, moderator=lena, reason="request 71")
    confirm(mona, waiting)
    with pytest.raises(BadInput, match="present state: queued"):
        request_erasure(waiting.pk, moderator=lena, reason="request 71")
    Step.objects.filter(purge=waiting).update(quarantined_at=None)
    Purge.objects.filter(pk=waiting.pk).update(state=PurgeState.CANCELLED)
    with pytest.raises(BadInput, match="There are no copies"):
        request_erasure(waiting.pk, moderator=lena, reason="request 71")


def test_after_thirty_days_an_erasure_cannot_be_requested(lena: User, purge: Purge) -> None:
    assert close_purge(shift(purge, 31).pk)
    with pytest.raises(BadInput, match="expire on their own"):
        request_erasure(purge.pk, moderator=lena, reason="request 71")
