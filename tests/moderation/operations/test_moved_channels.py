"""A channel in another guild than when a purge matched there: who may delete, restore and erase its messages."""

from __future__ import annotations

import pytest

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.roles import Role
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import ErasureDecision, PurgeState
from moderation.models import Purge
from moderation.operations.erasure.requests import approve_erasure, reject_erasure, request_erasure
from moderation.operations.purging.approvals import approve_purge
from moderation.operations.purging.controls import cancel_purge, pause_purge, resume_purge
from moderation.operations.undo.requests import UndoPart, offer_undo, request_undo
from tests.conftest import give
from tests.moderation.channels import VICTOR, confirm, preview, run_to_end
from tests.moderation.limits import limit, make_guild_channel, member, request


@pytest.fixture
def channel() -> Channel:
    """A channel of a guild, with 20 messages."""
    return make_guild_channel()


@pytest.fixture
def neighbour(channel: Channel) -> Channel:
    """Another channel of the same guild, with 20 messages."""
    other = make_guild_channel()
    Channel.objects.filter(pk=other.pk).update(guild=channel.guild_id)
    other.refresh_from_db()
    return other


@pytest.fixture
def mona(channel: Channel) -> User:
    return member("mona", Role.MODERATOR, channel)


def preview_guild(moderator: User, channel: Channel) -> Purge:
    """Preview a purge in all channels of the channel's guild."""
    return preview(moderator, Selection(guild_id=channel.guild_id, where=Author((VICTOR,))))


def move(channel: Channel) -> Guild:
    """Move a channel to a new guild, as an administrator or an import does."""
    guild = Guild.objects.create(pk=channel.pk - 2, name="Gophers")
    Channel.objects.filter(pk=channel.pk).update(guild=guild)
    return guild


def test_its_preview_is_confirmed_by_those_who_may_delete_in_both_guilds(
    mona: User, channel: Channel, neighbour: Channel
) -> None:
    purge = preview_guild(mona, channel)
    guild = move(neighbour)
    with pytest.raises(Forbidden):
        confirm(mona, purge)
    purge.refresh_from_db()
    assert purge.state == PurgeState.READY
    give(mona, Role.MODERATOR, guild_id=guild.pk)
    assert confirm(mona, purge).state == PurgeState.QUEUED


def test_neither_a_request_nor_its_approval_passes_it_by(mona: User, channel: Channel, neighbour: Channel) -> None:
    limit(channel, messages_without_approval=10)
    purge = preview_guild(mona, channel)
    asked = request(mona, purge)
    lena = member("lena", Role.LEAD, channel)
    guild = move(neighbour)
    with pytest.raises(Forbidden):
        request(mona, purge)
    with pytest.raises(Forbidden):
        approve_purge(purge.pk, asked.pk, approver=lena)
    give(lena, Role.LEAD, guild_id=guild.pk)
    with pytest.raises(BadInput, match="can no longer delete these messages"):
        approve_purge(purge.pk, asked.pk, approver=lena)
    give(mona, Role.MODERATOR, guild_id=guild.pk)
    assert approve_purge(purge.pk, asked.pk, approver=lena).state == PurgeState.QUEUED


def test_a_purge_can_be_stopped_there_but_not_continued(mona: User, channel: Channel, neighbour: Channel) -> None:
    purge = confirm(mona, preview_guild(mona, channel))
    move(neighbour)
    pause_purge(purge.pk, moderator=mona)
    with pytest.raises(Forbidden):
        resume_purge(purge.pk, moderator=mona)
    assert cancel_purge(purge.pk, moderator=mona).state == PurgeState.CANCELLING
    assert run_to_end(purge).state == PurgeState.CANCELLED


def test_the_messages_of_the_other_channels_alone_are_restored(
    mona: User, channel: Channel, neighbour: Channel
) -> None:
    purge = run_to_end(confirm(mona, preview_guild(mona, channel)))
    move(neighbour)
    there = UndoPart(channel_ids=(neighbour.pk,))
    for part in (UndoPart(), there, UndoPart(author_ids=(VICTOR,))):
        with pytest.raises(Forbidden):
            offer_undo(purge.pk, moderator=mona, part=part)
        with pytest.raises(Forbidden):
            request_undo(purge.pk, moderator=mona, part=part, reason="Appeal accepted")
    part = UndoPart(channel_ids=(channel.pk,))
    assert offer_undo(purge.pk, moderator=mona, part=part).count == 20
    request_undo(purge.pk, moderator=mona, part=part, reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.PARTLY_UNDONE


def test_its_copies_are_erased_by_two_people_who_may_erase_in_both_guilds(
    mona: User, channel: Channel, neighbour: Channel
) -> None:
    purge = run_to_end(confirm(mona, preview_guild(mona, channel)))
    lena, lea = member("lena", Role.LEAD, channel), member("lea", Role.LEAD, channel)
    asked = request_erasure(purge.pk, moderator=lea, reason="Request 71")
    guild = move(neighbour)
    with pytest.raises(Forbidden):
        approve_erasure(purge.pk, asked.pk, moderator=lena)
    give(lena, Role.LEAD, guild_id=guild.pk)
    with pytest.raises(BadInput, match="may not permanently delete these copies"):
        approve_erasure(purge.pk, asked.pk, moderator=lena)
    reject_erasure(purge.pk, asked.pk, moderator=lena)
    with pytest.raises(Forbidden):
        request_erasure(purge.pk, moderator=lea, reason="Request 71")
    give(lea, Role.LEAD, guild_id=guild.pk)
    again = request_erasure(purge.pk, moderator=lea, reason="Request 71")
    assert approve_erasure(purge.pk, again.pk, moderator=lena).decision == ErasureDecision.APPROVED
