"""A request for approval is closed, in the same transaction, by what leaves nothing to decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chatstore.domain.errors import BadInput
from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import ApprovalDecision, PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.preview.narrowing import keep_author, keep_channel
from moderation.operations.purging.approvals import approve_purge, open_approvals
from moderation.operations.purging.lifecycle import discard_preview
from moderation.presentation.audit import facts_in_short
from tests.moderation.channels import VICTOR, confirm, old_ids, preview
from tests.moderation.limits import limit, make_guild_channel, member, request


@pytest.fixture
def channels() -> list[Channel]:
    made = [make_guild_channel(), make_guild_channel("Gophers")]
    for channel in made:
        limit(channel, messages_without_approval=10)
    return made


@pytest.fixture
def mona(channels: list[Channel]) -> User:
    return member("mona", Role.MODERATOR, *channels)


@pytest.fixture
def lena(channels: list[Channel]) -> User:
    return member("lena", Role.LEAD, *channels)


def hash_of(purge: Purge) -> bytes:
    return bytes(purge.manifest_hash or b"")


def exclude(purge: Purge, mona: User) -> Purge:
    return exclude_messages(purge.pk, old_ids(20)[:2], moderator=mona, manifest_hash=hash_of(purge))


def narrow_to_channel(purge: Purge, mona: User) -> Purge:
    channel_id = purge.manifest_buckets.values_list("channel_id", flat=True)[0]
    return keep_channel(purge.pk, channel_id, moderator=mona, manifest_hash=hash_of(purge))


def narrow_to_author(purge: Purge, mona: User) -> Purge:
    return keep_author(purge.pk, VICTOR + 1, moderator=mona, manifest_hash=hash_of(purge))


def discard(purge: Purge, mona: User) -> None:
    discard_preview(purge.pk, moderator=mona)


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (exclude, "The preview was changed."),
        (narrow_to_channel, "The preview was changed."),
        (narrow_to_author, "The preview was discarded."),
        (discard, "The preview was discarded."),
    ],
)
def test_a_change_or_its_end_closes_it(
    end: Callable[[Purge, User], object], cause: str, mona: User, lena: User, channels: list[Channel]
) -> None:
    purge = preview(mona, Selection(channel_ids=tuple(one.pk for one in channels), where=Author((VICTOR,))))
    asked = request(mona, purge)
    end(purge, mona)
    asked.refresh_from_db()
    assert (asked.decision, asked.decided_by) == (ApprovalDecision.CLOSED, None)
    assert open_approvals(lena) == []
    entry = AuditEntry.objects.get(purge=purge, action="approval_closed")
    assert (entry.actor, entry.details["approval"]) == (mona, str(asked.pk))
    assert ("Cause", cause) in facts_in_short(entry.details)
    with pytest.raises(BadInput, match="already been decided"):
        approve_purge(purge.pk, asked.pk, approver=lena)


def test_a_confirmation_by_another_person_closes_it(mona: User, lena: User, channels: list[Channel]) -> None:
    purge = preview(mona, Selection(channel_ids=(channels[0].pk,), where=Author((VICTOR,))))
    asked = request(mona, purge)
    # Leads have no limit here.
    assert confirm(lena, purge).state == PurgeState.QUEUED
    asked.refresh_from_db()
    assert asked.decision == ApprovalDecision.CLOSED
    entry = AuditEntry.objects.get(purge=purge, action="approval_closed")
    assert (entry.actor, entry.details["requested_by"]) == (lena, mona.get_username())
    assert ("Cause", "The purge was confirmed without it.") in facts_in_short(entry.details)


def test_an_approval_closes_nothing(mona: User, lena: User, channels: list[Channel]) -> None:
    purge = preview(mona, Selection(channel_ids=(channels[0].pk,), where=Author((VICTOR,))))
    approve_purge(purge.pk, request(mona, purge).pk, approver=lena)
    assert not AuditEntry.objects.filter(purge=purge, action="approval_closed").exists()
