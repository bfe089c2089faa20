"""Beside each page: the guilds, and a guild's channels, with the posts of the last hour."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from chatstore.domain.roles import Role
from chatstore.domain.runs import Severity
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store import activity
from chatstore.store.redis import redis_client
from moderation.operations.lookup import sidebar
from moderation.operations.lookup.sidebar import MAX_NEIGHBOURS
from moderation.operations.raids.detection import RAID
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, now_ms
from tests.moderation.raids import forget_raids
from tests.waiting import wait_until

SignIn = Callable[[User], Client]

MAX_STATEMENTS = 13
"""Of the list, the account and its rights."""


@pytest.fixture
def guild() -> Guild:
    # Icons are shown if there are several.
    make_channel(guild="Harbour")
    return Guild.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name="Tide Walkers")


def note_posts(posted_at: dict[Channel, float]) -> None:
    redis_client().zadd(activity.KEY, {str(channel.pk): at for channel, at in posted_at.items()})


def test_channels_that_were_posted_in_within_the_hour_are_marked(guild: Guild, mona: User, sign_in: SignIn) -> None:
    quiet, busy, old = (make_channel(guild=guild, name=name) for name in ("quiet", "busy", "old"))
    now = now_ms() / 1000
    note_posts({busy: now - 60, old: now - 4000})
    html = sign_in(mona).get(f"/channels/{quiet.pk}/").content.decode()
    links = html.split('id="side"')[1].split("</nav>")[0].split("<li>")
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
    first, second, third = (make_channel(guild=guild, name=name) for name in ("a", "b", "c"))
    client = sign_in(mona)
    assert client.get(f"/guilds/{guild.pk}/")["Location"] == f"/channels/{first.pk}/#end"
    now = now_ms() / 1000
    note_posts({second: now - 30, third: now - 900})
    assert client.get(f"/guilds/{guild.pk}/")["Location"] == f"/channels/{second.pk}/#end"


def sidebar_of(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_the_posts_of_the_last_hour_are_a_number_and_a_spark(guild: Guild, mona: User, sign_in: SignIn) -> None:
    busy, quiet = make_channel(guild=guild, name="busy"), make_channel(guild=guild, name="quiet")
    for _ in range(5):
        activity.note_post(busy.pk)
    wait_until(lambda: sum(activity.posts_of_hour([busy.pk]).get(busy.pk, ())) == 5)
    links = sidebar_of(sign_in(mona), f"/sidebar/?channel={quiet.pk}").split("<li>")
    (spark,) = [link for link in links if f"/channels/{busy.pk}/" in link]
    assert 'title="5 messages in the last hour"' in spark
    assert re.search(r'<path d="M\d+ 14v-[\d.]+', spark)
    (none,) = [link for link in links if f"/channels/{quiet.pk}/" in link]
    assert "spark" not in none
    assert 'aria-current="true"' in none


def test_channels_stand_below_the_heading_of_their_category_in_order(guild: Guild, mona: User, sign_in: SignIn) -> None:
    placed = {"wharf": "Docks", "bell": "Town", "anchor": "Docks", "lobby": "", "<b>": "Town & <i>Hall"}
    channels = {name: make_channel(guild=guild, name=name, category=placed[name]) for name in placed}
    listed = sidebar_of(sign_in(mona), f"/sidebar/?channel={channels['wharf'].pk}").partition('<h2 class="clip">')[2]
    names = {str(channel.pk): name for name, channel in channels.items()}
    found = re.findall(r"<h3><bdi>(.*?)</bdi></h3>|/channels/(\d+)/", listed)
    assert [heading or names[channel] for heading, channel in found] == [
        "lobby", "Docks", "anchor", "wharf", "Town", "bell", "Town &amp; &lt;i&gt;Hall", "<b>",
    ]  # fmt: skip


def test_pages_without_a_channel_list_the_guild_of_the_channel_opened_last(
    guild: Guild, mona: User, sign_in: SignIn
) -> None:
    opened, other = make_channel(guild=guild, name="opened"), make_channel(guild=guild, name="other")
    client = sign_in(mona)
    client.get(f"/channels/{opened.pk}/")
    page = client.get("/").content.decode()
    assert 'hx-get="/sidebar/"' in page
    assert f"/channels/{other.pk}/" in sidebar_of(client, "/sidebar/")
    # A page about a channel lists its guild, and asking for the list is no visit.
    elsewhere = make_channel()
    assert (
        f'hx-get="/sidebar/?channel={elsewhere.pk}"' in client.get(f"/channels/{elsewhere.pk}/delete/").content.decode()
    )
    assert f"/channels/{other.pk}/" not in sidebar_of(client, f"/sidebar/?channel={elsewhere.pk}")
    assert f"/channels/{other.pk}/" in sidebar_of(client, "/sidebar/")


def test_the_list_takes_few_statements_however_many_channels_there_are(
    guild: Guild, mona: User, sign_in: SignIn, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    opened = make_channel(guild=guild, name="opened")
    for number in range(30):
        make_channel(guild=guild, name=f"pier-{number}")
    client = sign_in(mona)
    client.get(f"/channels/{opened.pk}/")
    with django_assert_max_num_queries(MAX_STATEMENTS):
        assert "pier-29" in sidebar_of(client, "/sidebar/")


def test_a_large_guild_lists_the_open_the_raided_and_the_active_channels_whatever_their_names(
    guild: Guild, mona: User, sign_in: SignIn
) -> None:
    first = make_channel(guild=guild, name="0")
    Channel.objects.bulk_create(
        Channel(pk=first.pk + number, guild=guild, name=f"pier-{number:04}") for number in range(1, 200)
    )
    opened, raided, active, quiet = (Channel.objects.get(pk=first.pk + number) for number in (199, 198, 197, 196))
    note_posts(dict.fromkeys((active, raided, opened), now_ms() / 1000))
    open_finding(RAID, str(raided.pk), Problem(Severity.CRITICAL, "Possible raid", {"since_ms": now_ms()}))
    try:
        html = sidebar_of(sign_in(mona), f"/sidebar/?channel={opened.pk}")
    finally:
        forget_raids()
    listed = [int(found) for found in re.findall(r"/channels/(\d+)/", html)]
    assert len(listed) == MAX_NEIGHBOURS
    assert listed == sorted(listed)
    assert listed[-3:] == [active.pk, raided.pk, opened.pk]
    assert quiet.pk not in listed
    icon = next(link for link in html.split("<li>") if f"/guilds/{guild.pk}/" in link)
    assert "guild tone" in icon
    assert 'title="Tide Walkers: possible raid"' in icon


def test_a_guild_with_very_many_channels_refers_to_the_search(guild: Guild, mona: User, sign_in: SignIn) -> None:
    first = make_channel(guild=guild, name="0")
    Channel.objects.bulk_create(
        Channel(pk=first.pk + number, guild=guild, name=f"pier-{number}") for number in range(1, MAX_NEIGHBOURS + 1)
    )
    html = sidebar_of(sign_in(mona), f"/sidebar/?channel={first.pk}")
    assert html.count("/channels/") == MAX_NEIGHBOURS
    assert "Find other channels with the search box." in html


def test_guilds_with_a_possible_raid_come_first_and_the_others_stay_in_order(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests have left many.
    monkeypatch.setattr(sidebar, "MAX_GUILDS", 100_000)
    made = [make_channel(guild=name) for name in ("Aft", "Bow", "Zenith")]
    ids = [channel.guild_id for channel in made]
    client = sign_in(mona)

    def listed() -> list[int]:
        html = sidebar_of(client, f"/sidebar/?channel={made[0].pk}")
        return [pk for pk in map(int, re.findall(r"/guilds/(\d+)/", html)) if pk in ids]

    assert listed() == ids
    open_finding(RAID, str(made[2].pk), Problem(Severity.CRITICAL, "Possible raid", {"since_ms": now_ms()}))
    try:
        assert listed() == [ids[2], ids[0], ids[1]]
    finally:
        forget_raids()


def test_a_guild_with_a_possible_raid_is_listed_among_very_many(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidebar, "MAX_GUILDS", 1)
    first, raided = make_channel(guild="Aft"), make_channel(guild="Zenith")
    open_finding(RAID, str(raided.pk), Problem(Severity.CRITICAL, "Possible raid", {"since_ms": now_ms()}))
    try:
        html = sidebar_of(sign_in(mona), f"/sidebar/?channel={first.pk}")
    finally:
        forget_raids()
    assert str(raided.guild_id) in re.findall(r"/guilds/(\d+)/", html)


def test_where_not_all_servers_are_listed_the_search_is_named(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, gus = make_channel(guild="Aft"), make_user("gus", group=None)
    for guild_id in (channel.guild_id, *(make_channel(guild=name).guild_id for name in ("Bow", "Cog"))):
        give(gus, Role.MODERATOR, guild_id=guild_id)
    client = sign_in(gus)
    for limit, is_named in ((3, False), (2, True)):
        monkeypatch.setattr(sidebar, "MAX_GUILDS", limit)
        html = sidebar_of(client, f"/sidebar/?channel={channel.pk}")
        assert ("Find other servers with the search box." in html) == is_named
