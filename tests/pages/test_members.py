"""Members of guilds on pages: roles beside authors, when a person joined where, and icons of guilds."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from chatstore.domain.roles import Role
from chatstore.gateway import MemberRole, post_message, save_guild_icon, save_member
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from tests.chatstore.channels import fresh_id
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.reading import read_html
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]

MIKA, AYLA = fresh_id(), fresh_id()
"""Authors that other tests do not show."""

CAPTAIN, CREW = MemberRole("Captain", "#e67e22"), MemberRole("Crew")
ICON = "https://cdn.example/icons/1/a.png?size=64"
HOSTILE = "<script>alert(1)</script>\u202e" + "W" * 60


def channel_in(name: str | None = "Harbour") -> Channel:
    channel = make_channel()
    if name is not None:
        channel.guild = Guild.objects.create(pk=channel.pk - 1, name=name)
        channel.save()
    return channel


def read(client: Client, path: str) -> str:
    return re.sub(r"\s+", " ", read_html(client, path))


def roles_shown(html: str) -> list[str]:
    """Return the roles beside authors, without those of messages that continue a run, which the style sheet hides."""
    begins = re.sub(r'<article class="msg[^"]*\bcontinued\b.*?</article>', "", html, flags=re.DOTALL)
    return re.findall(r'<span class="role" title="([^"]*)">', begins)


def statements_about_members(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len([query for query in captured if "chatstore_guildmember" in query["sql"]])


def test_the_highest_role_of_an_author_is_beside_the_first_message_of_each_run(mona: User, sign_in: SignIn) -> None:
    channel = channel_in()
    first, *rest = old_ids(4)
    write(channel, [first, first + 1], author=MIKA)
    write(channel, rest, author=AYLA)
    assert channel.guild_id is not None
    save_member(channel.guild_id, MIKA, roles=[CAPTAIN, CREW])
    save_member(channel.guild_id, AYLA, roles=[], joined_at=timezone.now())
    client = sign_in(mona)
    for path in (f"/channels/{channel.pk}/", f"/channels/{channel.pk}/rows/?before={rest[-1]}"):
        html = read(client, path)
        assert roles_shown(html) == ["Captain"]
        assert 'fill="#e67e22"' in html


def test_new_messages_show_roles_too_and_other_guilds_none(mona: User, sign_in: SignIn) -> None:
    here, elsewhere = channel_in(), channel_in("Quay")
    assert here.guild_id is not None
    save_member(here.guild_id, MIKA, roles=[CREW])
    shown = {}
    for channel in (here, elsewhere):
        posted = post_message(channel.pk, author_id=MIKA, content="good morning")
        html = read(sign_in(mona), f"/channels/{channel.pk}/new/?newest={posted.message_id - 1}")
        shown[channel] = roles_shown(html)
        assert "<circle" not in html
    assert shown == {here: ["Crew"], elsewhere: []}


@pytest.mark.parametrize("messages", [2, 45])
def test_a_page_reads_roles_once_and_not_at_all_in_direct_messages(messages: int, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for channel, statements in ((channel_in(), 1), (channel_in(None), 0)):
        for author, message_id in enumerate(old_ids(messages), start=MIKA):
            write(channel, [message_id], author=author)
        assert statements_about_members(client, f"/channels/{channel.pk}/") == statements


def test_a_person_is_shown_with_roles_and_joining_in_the_servers_that_the_viewer_may_see(sign_in: SignIn) -> None:
    seen, hidden = channel_in("Harbour"), channel_in("Secret Quay")
    assert seen.guild_id is not None
    assert hidden.guild_id is not None
    gus, author = make_user("gus", group=None), secrets.randbits(60)
    give(gus, Role.MODERATOR, guild_id=seen.guild_id)
    write(seen, old_ids(1), author=author)
    joined = timezone.now() - dt.timedelta(minutes=4)
    save_member(seen.guild_id, author, joined_at=joined, roles=[CAPTAIN, CREW])
    save_member(hidden.guild_id, author, joined_at=joined, roles=[MemberRole("Spy")])
    client = sign_in(gus)
    for path in (f"/users/{author}/", f"/users/{author}/panel/"):
        html = read(client, path)
        assert roles_shown(html) == ["Captain", "Crew"]
        assert re.search(r"joined <time[^>]*>4 minutes ago", html)
        assert "Secret Quay" not in html
        assert "Spy" not in html
        assert statements_about_members(client, path) == 1


def test_a_hostile_role_and_icon_are_inert(mona: User, sign_in: SignIn, settings: Settings) -> None:
    settings.MEDIA_HOSTS = frozenset({"cdn.example"})
    channel = channel_in(HOSTILE)
    write(channel, old_ids(2), author=MIKA)
    assert channel.guild_id is not None
    save_member(channel.guild_id, MIKA, roles=[MemberRole(HOSTILE)], joined_at=timezone.now())
    save_guild_icon(channel.guild_id, 'https://cdn.example/"><script>alert(2)</script>')
    client = sign_in(mona)
    for path in (f"/channels/{channel.pk}/", f"/users/{MIKA}/", f"/users/{MIKA}/panel/"):
        html = client.get(path).content.decode()
        check_harmless(html)
        assert "[RLO]" in html


@pytest.mark.parametrize(
    ("hosts", "url", "is_shown"),
    [
        (("cdn.example",), ICON, True),
        (("media.example",), ICON, False),
        ((), ICON, False),
        (("cdn.example",), "", False),
        (("cdn.example",), "https://cdn.example.evil.example/a.png", False),
    ],
)
def test_the_icon_of_a_guild_is_loaded_from_allowed_hosts_and_initials_otherwise(
    hosts: tuple[str, ...], url: str, mona: User, sign_in: SignIn, settings: Settings, *, is_shown: bool
) -> None:
    settings.MEDIA_HOSTS = frozenset(hosts)
    # A single server is not listed.
    channel, _ = channel_in("Tide Walkers"), channel_in("Quay")
    assert channel.guild_id is not None
    save_guild_icon(channel.guild_id, url)
    html = read(sign_in(mona), f"/channels/{channel.pk}/")
    link = next(part for part in html.split("<li>") if f'href="/guilds/{channel.guild_id}/"' in part)
    assert ">TW<" in link
    assert (f'src="{url}"' in link) is is_shown
    assert ('referrerpolicy="no-referrer"' in link) is is_shown
    # Beside the name of the server, above the channel.
    heading = html.split('crumbs">')[1].split("</p>")[0]
    assert ("<img" in heading) is is_shown
