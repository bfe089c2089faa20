"""Limits count in the guilds in which a purge deletes messages, not in others that its filter names."""

from __future__ import annotations

import pytest

from chatstore.domain.errors import Forbidden, NotFound
from chatstore.domain.roles import Role
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.exclusions import exclude_messages, include_messages
from moderation.operations.preview.narrowing import keep_channel
from moderation.operations.purging.approvals import approve_purge, open_approvals, reject_approval
from moderation.operations.purging.limits import ApprovalNeeded
from moderation.views.purge_approval import describe_approval
from tests.conftest import give
from tests.moderation.channels import VICTOR, confirm, make_channel, old_ids, preview, write
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request


@pytest.fixture
def silent() -> Channel:
    """A channel of another guild, without messages."""
    made = make_channel()
    made.guild = Guild.objects.create(pk=made.pk - 1, name="Gophers")
    made.save()
    return made


@pytest.fixture
def both(channel: Channel, silent: Channel) -> User:
    """Bo, a moderator of both guilds."""
    return member("bo", Role.MODERATOR, channel, silent)


def hash_of(purge: Purge) -> bytes:
    purge.refresh_from_db()
    return bytes(purge.manifest_hash or b"")


def test_a_guild_without_a_match_does_not_ask_for_approval(both: User, channel: Channel, silent: Channel) -> None:
    limit(silent, messages_without_approval=1)
    purge = preview_some(both, 5, channel, silent)
    assert (purge.guild_ids, purge.manifest_guild_ids) == (
        sorted([channel.guild_id or 0, silent.guild_id or 0]),
        [channel.guild_id],
    )
    assert describe_approval(both, purge, None).needed == ""
    assert confirm(both, purge).state == PurgeState.QUEUED


def test_a_guild_without_a_match_is_not_charged_an_hourly_limit(both: User, channel: Channel, silent: Channel) -> None:
    limit(silent, purges_per_hour=1, messages_per_hour=3)
    for _ in range(2):
        assert confirm(both, preview_some(both, 5, channel, silent)).state == PurgeState.QUEUED
    write(silent, old_ids(20)[:2])
    assert confirm(both, preview_some(both, 2, silent)).state == PurgeState.QUEUED


def test_a_guild_without_a_match_has_no_open_preview_once_it_is_scanned(
    both: User, channel: Channel, silent: Channel
) -> None:
    limit(silent, open_previews=1)
    for _ in range(2):
        preview_some(both, 5, channel, silent)
    write(silent, old_ids(20)[:2])
    assert preview_some(both, 2, silent).manifest_guild_ids is None


def test_a_guild_counts_no_more_once_its_channel_is_taken_out_of_the_preview(channel: Channel) -> None:
    other = make_guild_channel("Gophers")
    limit(other, messages_without_approval=1)
    bea = member("bea", Role.MODERATOR, channel, other)
    purge = preview_some(bea, 4, channel, other)
    with pytest.raises(ApprovalNeeded, match="In Gophers, you can delete up to 1 message"):
        confirm(bea, purge)
    narrowed = keep_channel(purge.pk, other.pk, moderator=bea, manifest_hash=hash_of(purge))
    assert (narrowed.manifest, narrowed.manifest_guild_ids) == (4, [channel.guild_id])
    assert confirm(bea, narrowed).state == PurgeState.QUEUED


def test_a_guild_counts_while_one_of_its_messages_is_included(both: User, channel: Channel, silent: Channel) -> None:
    write(silent, only := old_ids(1, buckets_ago=5))
    selection = Selection(channel_ids=(channel.pk, silent.pk), where=Author((VICTOR,)))
    purge = preview(both, selection)
    guild_ids = sorted([channel.guild_id or 0, silent.guild_id or 0])
    assert purge.manifest_guild_ids == guild_ids
    purge = exclude_messages(purge.pk, only, moderator=both, manifest_hash=hash_of(purge))
    assert (purge.manifest_guild_ids, purge.guild_ids) == ([channel.guild_id], guild_ids)
    purge = include_messages(purge.pk, only, moderator=both, manifest_hash=hash_of(purge))
    assert purge.manifest_guild_ids == guild_ids


@pytest.fixture
def asked(both: User, channel: Channel, silent: Channel) -> Purge:
    """A purge above the limit of the guild in which it matched; its filter names the other one too."""
    purge = preview_some(both, 20, channel, silent)
    request(both, purge)
    return purge


def test_who_leads_where_it_deletes_and_sees_the_rest_decides(
    asked: Purge, lena: User, channel: Channel, silent: Channel
) -> None:
    approval = asked.approvals.get()
    # The filter and the reason were written for both guilds.
    assert open_approvals(lena) == []
    with pytest.raises(NotFound):
        approve_purge(asked.pk, approval.pk, approver=lena)
    give(lena, Role.AUDITOR, guild_id=silent.guild_id)
    assert open_approvals(lena) == [approval]
    assert describe_approval(lena, asked, approval).may_decide
    assert approve_purge(asked.pk, approval.pk, approver=lena).state == PurgeState.QUEUED


def test_who_leads_only_where_nothing_matched_does_not_decide(asked: Purge, channel: Channel, silent: Channel) -> None:
    approval = asked.approvals.get()
    lars = member("lars", Role.LEAD, silent)
    give(lars, Role.AUDITOR, guild_id=channel.guild_id)
    assert open_approvals(lars) == []
    assert not describe_approval(lars, asked, approval).may_decide
    for decide in (
        lambda: approve_purge(asked.pk, approval.pk, approver=lars),
        lambda: reject_approval(asked.pk, approval.pk, approver=lars, reason="No"),
    ):
        with pytest.raises(Forbidden):
            decide()


def test_an_approval_takes_the_right_in_every_guild_with_a_match(channel: Channel, lena: User) -> None:
    other = make_guild_channel("Gophers")
    both = member("bea", Role.MODERATOR, channel, other)
    purge = preview_some(both, 15, channel, other)
    approval = request(both, purge)
    give(lena, Role.AUDITOR, guild_id=other.guild_id)
    assert open_approvals(lena) == []
    with pytest.raises(Forbidden):
        approve_purge(purge.pk, approval.pk, approver=lena)
    give(lena, Role.LEAD, guild_id=other.guild_id)
    assert approve_purge(purge.pk, approval.pk, approver=lena).state == PurgeState.QUEUED
