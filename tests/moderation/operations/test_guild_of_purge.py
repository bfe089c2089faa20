"""The guild of a purge, by which purges take turns."""

from __future__ import annotations

import random

import pytest

from chatstore.models import Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import VICTOR, make_channel


@pytest.fixture
def guild() -> Guild:
    return Guild.objects.create(pk=random.getrandbits(60), name="a guild")


def guild_of_purge(moderator: User, selection: Selection) -> int:
    return draft_purge(moderator=moderator, selection=selection).guild_id


def test_it_is_the_guild_of_the_selected_channels(mona: User, guild: Guild) -> None:
    channels = tuple(make_channel(guild=guild).pk for _ in range(2))
    assert guild_of_purge(mona, Selection(channel_ids=channels, where=Author((VICTOR,)))) == guild.pk


def test_it_is_the_selected_guild(mona: User, guild: Guild) -> None:
    make_channel(guild=guild)
    assert guild_of_purge(mona, Selection(guild_id=guild.pk, where=Author((VICTOR,)))) == guild.pk


def test_there_is_none_if_the_channels_are_in_several_guilds_or_none_is_named(mona: User, guild: Guild) -> None:
    channels = (make_channel(guild=guild).pk, make_channel().pk)
    assert guild_of_purge(mona, Selection(channel_ids=channels, where=Author((VICTOR,)))) == 0
    assert guild_of_purge(mona, Selection(where=Author((VICTOR,)))) == 0
