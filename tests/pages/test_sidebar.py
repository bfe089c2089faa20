"""Beside a channel: the guilds, and the guild's channels, with those that were posted in within the last hour."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from chatstore.store import activity
from chatstore.store.redis import redis_client
from tests.moderation.channels import make_channel, now_ms

SignIn = Callable[[User], Client]


@pytest.fixture
def guild() -> Guild:
    return Guild.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name="Tide Walkers")


def channel_in(guild: Guild, name: str) -> Channel:
    channel = make_channel()
    channel.guild, channel.name = guild, name
    channel.save()
    return channel


def note_posts(posted_at: dict[Channel, float]) -> None:
    redis_client().zadd(activity.KEY, {str(channel.pk): at for channel, at in posted_at.items()})


def test_channels_that_were_posted_in_within_the_hour_are_marked(guild: Guild, mona: User, sign_in: SignIn) -> None:
    quiet, busy, old = (channel_in(guild, name) for name in ("quiet", "busy", "old"))
    now = now_ms() / 1000
    note_posts({busy: now - 60, old: now - 4000})
    html = sign_in(mona).get(f"/channels/{quiet.pk}/").content.decode()
    links = html.split('id="channels"')[1].split("</nav>")[0].split("<li>")
    marked = {
        channel.name: "live-dot" in link
        for channel in (quiet, busy, old)
        for link in links
        if f"/channels/{channel.pk}/" in link
    }
    assert marked == {"quiet": False, "busy": True, "old": False}
    icon = next(link for link in links if f"/guilds/{guild.pk}/" in link)
    assert ">TW<" in icon
    assert "guild tone" in icon
    assert " live" in icon


def test_a_guild_leads_to_its_channel_with_the_newest_message(guild: Guild, mona: User, sign_in: SignIn) -> None:
    first, second, third = (channel_in(guild, name) for name in ("a", "b", "c"))
    client = sign_in(mona)
    assert client.get(f"/guilds/{guild.pk}/")["Location"] == f"/channels/{first.pk}/#end"
    now = now_ms() / 1000
    note_posts({second: now - 30, third: now - 900})
    assert client.get(f"/guilds/{guild.pk}/")["Location"] == f"/channels/{second.pk}/#end"
