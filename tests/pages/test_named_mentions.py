"""Pages that show single messages name the channels and roles that these mention, if the viewer may know them."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from chatstore.domain.members import MemberRole
from chatstore.domain.roles import Role
from chatstore.gateway import save_member
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from tests.chatstore.channels import fresh_id
from tests.conftest import give, make_user
from tests.moderation.channels import everything, make_channel, old_ids, preview, purge_now, recent_ids, write
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]

PAGES = ("heading of a message", "preview", "list of messages", "undo", "raid", "user")


def path_of(page: str, channel: Channel, message_id: int, author: int, moderator: User) -> str:
    """Return the path of a page that shows the messages of a channel, which are by one author."""
    match page:
        case "preview":
            return f"/purges/{preview(moderator, everything(channel)).pk}/"
        case "list of messages":
            return f"/purges/{preview(moderator, everything(channel)).pk}/messages/"
        case "undo":
            return f"/purges/{purge_now(moderator, everything(channel)).pk}/undo/"
        case "raid":
            return f"/raids/{channel.pk}/"
        case "user":
            return f"/users/{author}/"
    return f"/channels/{channel.pk}/{message_id}/"


def ids_for(page: str, count: int) -> list[int]:
    return recent_ids(count, minutes_ago=5) if page == "raid" else old_ids(count)


def texts_on(page: str, html: str) -> str:
    """Return what is read on a page, of a message's own page its heading."""
    shown = html.partition('class="heading-excerpt"')[2].partition("</p>")[0] if page.startswith("heading") else html
    return " ".join(unescape(strip_tags(shown)).split())


def add_role(guild: Guild | None, name: str) -> int:
    """Give a member a role with this name; return its ID."""
    role_id = fresh_id()
    assert guild is not None
    save_member(guild.pk, fresh_id(), roles=[MemberRole(name, role_id=role_id)])
    return role_id


@pytest.mark.parametrize("page", PAGES)
def test_channels_and_roles_are_named_but_none_of_another_server(page: str, sign_in: SignIn) -> None:
    general, secret = make_channel(guild="Harbour"), make_channel(guild="Quay", name="secret")
    pier = make_channel(guild=general.guild, name="pier")
    crew, cook = add_role(general.guild, "Crew"), add_role(secret.guild, "Cook")
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=general.guild_id)
    (message_id,), author = ids_for(page, 1), fresh_id()
    text = f"**<@&{crew}>** in <#{pier.pk}>, not <#{secret.pk}> of <@&{cook}>"
    write(general, [message_id], author=author, content=text)
    html = read_html(sign_in(gus), path_of(page, general, message_id, author, gus))
    assert f"@Crew in #pier, not #{secret.pk} of @role {cook} {message_id}" in texts_on(page, html)


@pytest.mark.parametrize("page", PAGES)
def test_the_names_take_as_many_statements_for_many_messages_as_for_two(page: str, mona: User, sign_in: SignIn) -> None:
    client, statements = sign_in(mona), list[int]()
    for count in (2, 5):
        channel, author = make_channel(guild="Harbour"), fresh_id()
        ids = ids_for(page, count)
        for message_id in ids:
            pier, crew = make_channel(guild=channel.guild, name="pier"), add_role(channel.guild, "Crew")
            write(channel, [message_id], author=author, content=f"<@&{crew}> in <#{pier.pk}>")
        path = path_of(page, channel, ids[-1], author, mona)
        assert f"@Crew in #pier {ids[-1]}" in texts_on(page, read_html(client, path))
        with CaptureQueriesContext(connection) as captured:
            read_html(client, path)
        statements.append(len(captured))
    assert statements[0] == statements[1]


def test_messages_of_several_servers_name_the_roles_of_their_own(mona: User, sign_in: SignIn) -> None:
    channels, author = [make_channel(guild=name) for name in ("Harbour", "Quay")], fresh_id()
    roles = [add_role(channel.guild, f"Crew {number}") for number, channel in enumerate(channels)]
    for channel, message_id in zip(channels, old_ids(2), strict=True):
        write(channel, [message_id], author=author, content=f"<@&{roles[0]}> and <@&{roles[1]}>")
    purge = preview(mona, Selection(channel_ids=tuple(each.pk for each in channels), where=Author((author,))))
    for path in (f"/purges/{purge.pk}/", f"/purges/{purge.pk}/messages/"):
        html = read_html(sign_in(mona), path)
        named = re.findall(r"@\S+ \d+ and @\S+ \d+", texts_on("", html))
        assert sorted(named) == [f"@Crew 0 and @role {roles[1]}", f"@role {roles[0]} and @Crew 1"]
