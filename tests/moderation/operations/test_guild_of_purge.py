"""The guild of a purge, by which purges take turns."""

from __future__ import annotations

import random

import pytest

from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import VICTOR, make_channel


@pytest.fixture
def guild() -> Guild:
    return Guild.objects.create(pk=random.getrandbits(60), name="a guild")


def channel_in(guild: Guild | None) -> Channel:
    channel = make_channel()
    channel.guild = guild
    channel.save()
    return channel


def guild_of_purge(moderator: User, selection: Selection) -> int:
    return draft_purge(moderator=moderator, selection=selection).guild_id


def test_it_is_the_guild_of_the_selected_channels(mona: User, guild: Guild) -> None:
    channels = tuple(channel_in(guild).pk for _ in range(2))
    assert guild_of_purge(mona, Selection(channel_ids=channels, where=Author((VICTOR,)))) == guild.pk


def test_it_is_the_selected_guild(mona: User, guild: Guild) -> None:
    channel_in(guild)
    assert guild_of_purge(mona, Selection(guild_id=guild.pk, where=Author((VICTOR,)))) == guild.pk


def test_there_is_none_if_the_channels_are_in_several_guilds_or_none_is_named(mona: User, guild: Guild) -> None:
    channels = (channel_in(guild).pk, channel_in(None).pk)
    assert guild_of_purge(mona, Selection(channel_ids=channels, where=Author((VICTOR,)))) == 0
    assert guild_of_purge(mona, Selection(where=Author((VICTOR,)))) == 0
