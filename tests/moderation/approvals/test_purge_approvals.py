"""A purge above its moderator's limit is confirmed by the approval of another person, for exactly its manifest."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.roles import Role
from chatstore.models import Channel, RoleGrant
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.rights import forget_grants
from moderation.domain.states import ApprovalDecision, PurgeState
from moderation.models import AuditEntry, Purge, PurgeApproval
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.purging.approvals import (
    approve_purge,
    expire_approvals,
    last_decided,
    open_approval,
    open_approvals,
    reject_approval,
    request_approval,
    withdraw_approval,
)
from moderation.operations.purging.lifecycle import discard_preview, expire_previews
from moderation.operations.purging.limits import ApprovalNeeded
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import confirm, old_ids, run_to_end
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request


def state_of(purge: Purge) -> str:
    purge.refresh_from_db()
    return purge.state


def age(approval: PurgeApproval, **by: int) -> None:
    PurgeApproval.objects.filter(pk=approval.pk).update(requested_at=F("requested_at") - dt.timedelta(**by))


def test_a_moderator_confirms_alone_up_to_the_limit(mona: User, channel: Channel) -> None:
    assert confirm(mona, preview_some(mona, 10, channel)).state == PurgeState.QUEUED


def test_above_the_limit_the_purge_waits_for_a_lead(mona: User, channel: Channel) -> None:
    purge = preview_some(mona, 11, channel)
    with pytest.raises(ApprovalNeeded, match=r"up to 10 messages at a time. This purge deletes 11, so a lead"):
        confirm(mona, purge)
    assert state_of(purge) == PurgeState.READY


def test_an_approval_confirms_the_purge_in_the_name_of_its_moderator(mona: User, lena: User, channel: Channel) -> None:
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    assert open_approvals(lena) == [asked]
    approved = approve_purge(purge.pk, asked.pk, approver=lena)
    assert (approved.state, approved.moderator, approved.reason) == (PurgeState.QUEUED, mona, "Spam wave")
    approve_purge(purge.pk, asked.pk, approver=lena)
    assert open_approvals(lena) == []
    entries = AuditEntry.objects.filter(purge=purge).order_by("id").values_list("action", "actor")
    assert list(entries) == [
        ("purge_drafted", mona.pk),
        ("approval_requested", mona.pk),
        ("approval_given", lena.pk),
        ("purge_confirmed", mona.pk),
    ]
    assert AuditEntry.objects.get(purge=purge, action="purge_confirmed").details["approved_by"] == lena.username
    assert run_to_end(purge).state == PurgeState.DONE


def test_an_own_request_cannot_be_approved(lena: User, channel: Channel) -> None:
    limit(channel, Role.LEAD, messages_without_approval=10)
    purge = preview_some(lena, 20, channel)
    asked = request(lena, purge)
    with pytest.raises(BadInput, match="Ask another person"):
        approve_purge(purge.pk, asked.pk, approver=lena)
    assert open_approvals(lena) == []


def test_the_database_refuses_an_own_approval(mona: User, lena: User, channel: Channel) -> None:
    asked = request(mona, preview_some(mona, 20, channel))
    stored = PurgeApproval.objects.filter(pk=asked.pk)
    for decided_by in (mona, None):
        with pytest.raises(IntegrityError), transaction.atomic():
            stored.update(decision=ApprovalDecision.APPROVED, decided_by=decided_by)
    with pytest.raises(IntegrityError, match="approved_by_another"), transaction.atomic():
        PurgeApproval.objects.create(
            purge=asked.purge,
            requested_by=lena,
            decided_by=lena,
            decided_at=ClockTimestamp(),
            decision=ApprovalDecision.APPROVED,
            manifest_hash=asked.manifest_hash,
        )


def test_a_preview_that_changed_needs_another_request(mona: User, lena: User, channel: Channel) -> None:
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    exclude_messages(purge.pk, old_ids(20)[:2], moderator=mona, manifest_hash=bytes(purge.manifest_hash or b""))
    with pytest.raises(BadInput, match="the preview has changed"):
        approve_purge(purge.pk, asked.pk, approver=lena)
    assert state_of(purge) == PurgeState.READY
    approve_purge(purge.pk, request(mona, purge).pk, approver=lena)
    assert state_of(purge) == PurgeState.QUEUED


def test_a_request_ends_after_a_day_and_its_preview_with_it(mona: User, lena: User, channel: Channel) -> None:
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    Purge.objects.filter(pk=purge.pk).update(ready_at=F("ready_at") - dt.timedelta(hours=30))
    age(asked, hours=23, minutes=59)
    expire_approvals()
    expire_previews()
    assert (state_of(purge), open_approval(purge)) == (PurgeState.READY, asked)
    age(asked, minutes=2)
    assert open_approval(purge) is None
    with pytest.raises(BadInput, match="has expired"):
        approve_purge(purge.pk, asked.pk, approver=lena)
    expire_approvals()
    expire_previews()
    asked.refresh_from_db()
    assert (state_of(purge), asked.decision) == (PurgeState.EXPIRED, ApprovalDecision.EXPIRED)
    assert AuditEntry.objects.filter(purge=purge, action="approval_expired", actor=None).count() == 1


def test_a_rejected_request_has_a_reason_and_can_be_made_again(mona: User, lena: User, channel: Channel) -> None:
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    with pytest.raises(BadInput, match="Enter a reason"):
        reject_approval(purge.pk, asked.pk, approver=lena, reason=" ")
    reject_approval(purge.pk, asked.pk, approver=lena, reason="Keep the pinned ones")
    with pytest.raises(BadInput, match="already been decided"):
        approve_purge(purge.pk, asked.pk, approver=lena)
    rejected = last_decided(purge)
    assert rejected is not None
    assert (rejected.decided_by, rejected.decision_reason) == (lena, "Keep the pinned ones")
    assert request(mona, purge) == open_approval(purge)


def test_a_request_is_withdrawn_by_its_moderator_only_and_by_discarding(
    mona: User, lena: User, channel: Channel
) -> None:
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    with pytest.raises(BadInput, match="made this request"):
        withdraw_approval(purge.pk, asked.pk, moderator=lena)
    with pytest.raises(BadInput, match="own request"):
        reject_approval(
            purge.pk, request_again(mona, purge, asked).pk, approver=mona_as_lead(mona, channel), reason="x"
        )
    discard_preview(purge.pk, moderator=mona)
    assert not purge.approvals.undecided().exists()


def request_again(mona: User, purge: Purge, asked: PurgeApproval) -> PurgeApproval:
    withdraw_approval(purge.pk, asked.pk, moderator=mona)
    return request(mona, purge)


def mona_as_lead(mona: User, channel: Channel) -> User:
    RoleGrant.objects.create(account=mona, role=Role.LEAD, guild_id=channel.guild_id)
    forget_grants(mona)
    return mona


def test_only_leads_of_every_guild_of_the_purge_see_and_decide(mona: User, lena: User, channel: Channel) -> None:
    other = make_guild_channel("Gophers")
    both = member("bo", Role.MODERATOR, channel, other)
    purge = preview_some(both, 20, channel, other)
    asked = request(both, purge)
    assert purge.manifest == 40
    gus = member("gus", Role.MODERATOR, other)
    elsewhere = member("leo", Role.LEAD, make_guild_channel("Quarry"))
    for person, error in ((gus, Forbidden), (mona, Forbidden), (elsewhere, NotFound), (lena, NotFound)):
        with pytest.raises(error):
            approve_purge(purge.pk, asked.pk, approver=person)
        with pytest.raises(error):
            reject_approval(purge.pk, asked.pk, approver=person, reason="x")
        assert open_approvals(person) == []
    approve_purge(purge.pk, asked.pk, approver=member("lead", Role.LEAD, channel, other))
    assert state_of(purge) == PurgeState.QUEUED


def test_a_role_that_ended_neither_approves_nor_lets_a_request_be_approved(
    mona: User, lena: User, channel: Channel
) -> None:
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    for person in (lena, mona):
        RoleGrant.objects.filter(account=person).update(taken_at=ClockTimestamp())
        forget_grants(person)
    with pytest.raises(Forbidden):
        approve_purge(purge.pk, asked.pk, approver=lena)
    with pytest.raises(BadInput, match="can no longer delete these messages"):
        approve_purge(purge.pk, asked.pk, approver=member("lea", Role.LEAD, channel))
    assert state_of(purge) == PurgeState.READY


def test_within_the_limit_no_approval_can_be_requested(mona: User, channel: Channel) -> None:
    purge = preview_some(mona, 10, channel)
    with pytest.raises(BadInput, match="within your limits"):
        request(mona, purge)
    with pytest.raises(BadInput, match="preview has changed"):
        request_approval(purge.pk, moderator=mona, reason="x", manifest_hash=b"0" * 32)


def test_an_undo_is_not_limited(mona: User, lena: User, channel: Channel) -> None:
    purge = preview_some(mona, 20, channel)
    approve_purge(purge.pk, request(mona, purge).pk, approver=lena)
    run_to_end(purge)
    limit(channel, messages_without_approval=1, purges_per_hour=1, messages_per_hour=1, open_previews=1)
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.UNDONE
