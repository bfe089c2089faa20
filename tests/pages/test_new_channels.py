"""An administrator adds a guild with all its channels by one form; if any line is invalid, nothing is saved."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

from django.test import Client

from chatstore.admin_guilds import MAX_CHANNELS
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.models import AuditEntry
from tests.chatstore.channels import fresh_id

SignIn = Callable[[User], Client]

ADD = "/admin/chatstore/guild/add/"


def errors_of(client: Client, guild_id: int, lines: str) -> str:
    response = client.post(ADD, {"id": guild_id, "name": "Harbour", "new_channels": lines})
    assert response.status_code == 200
    assert not Guild.objects.filter(pk=guild_id).exists()
    return unescape(re.sub(r"\s+", " ", response.content.decode()))


def test_a_guild_is_added_with_its_channels_and_each_is_in_the_audit_log(ada: User, sign_in: SignIn) -> None:
    guild_id, pier, quay = fresh_id(), fresh_id(), fresh_id()
    lines = f"{pier} pier\r\n\r\n  {quay}   #the long quay \r\n"
    response = sign_in(ada).post(ADD, {"id": guild_id, "name": "Harbour", "new_channels": lines})
    assert response.status_code == 302
    channels = Channel.objects.filter(guild_id=guild_id).values_list("pk", "name", "kind")
    assert set(channels) == {(pier, "pier", "text"), (quay, "the long quay", "text")}
    added = AuditEntry.objects.filter(action="channel_added", actor=ada, guild_id=guild_id)
    assert set(added.values_list("channel_id", flat=True)) == {pier, quay}


def test_the_form_has_a_heading_and_no_link_to_itself(ada: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    for url, heading in ((ADD, "Add server"), ("/admin/auth/user/add/", "Add user")):
        form = client.get(url).content.decode()
        assert re.search(rf"<h2[^>]*>{heading}</h2>", form)
        assert "addlink" not in form
    assert "addlink" in client.get("/admin/chatstore/guild/").content.decode()


def test_channels_are_added_to_a_guild_that_exists(ada: User, sign_in: SignIn) -> None:
    guild, pier = Guild.objects.create(pk=fresh_id(), name="Harbour"), fresh_id()
    page = f"/admin/chatstore/guild/{guild.pk}/change/"
    client = sign_in(ada)
    assert "New channels" in client.get(page).content.decode()
    assert client.post(page, {"name": "Harbour", "new_channels": f"{pier} pier"}).status_code == 302
    assert Channel.objects.get(pk=pier).guild == guild


def test_each_invalid_line_has_an_error_and_nothing_is_saved(ada: User, sign_in: SignIn) -> None:
    client, pier, existing = sign_in(ada), fresh_id(), fresh_id()
    Channel.objects.create(pk=existing, name="old")
    lines = (
        f"{pier} pier\n#quay\n{fresh_id()}\n{pier} quay\n{existing} old\n{fresh_id()} {'x' * 300}\n{'9' * 5_000} pier"
    )
    page = errors_of(client, fresh_id(), lines)
    for error in (
        "Line 2: It does not begin with an ID.",
        "Line 3: The name is missing.",
        "Line 4: It has the ID of line 1.",
        "Line 5: A channel with this ID exists.",
        "Line 6: The name has more than ",
        "Line 7: It does not begin with an ID.",
    ):
        assert error in page
    assert "Line 1" not in page
    assert not Channel.objects.filter(pk=pier).exists()


def test_too_many_lines_are_refused(ada: User, sign_in: SignIn) -> None:
    lines = "\n".join(f"{number} pier" for number in range(1, MAX_CHANNELS + 2))
    assert "Enter at most 500 channels at a time." in errors_of(sign_in(ada), fresh_id(), lines)


def test_accounts_that_may_not_add_channels_have_no_field_for_them(otto: User, sign_in: SignIn) -> None:
    guild = Guild.objects.create(pk=fresh_id(), name="Harbour")
    assert "New channels" not in sign_in(otto).get(f"/admin/chatstore/guild/{guild.pk}/change/").content.decode()
