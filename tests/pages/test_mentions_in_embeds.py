"""Embeds, and texts whose sender listed no mentioned users, name whom and what they mention."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.members import MemberRole
from chatstore.gateway import post_message, save_member
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]


def make_author(name: str) -> ChatUser:
    return ChatUser.objects.create(pk=fresh_id(), name=f"{name}-{secrets.token_hex(4)}")


def mentions_in(html: str) -> list[str]:
    """Return the mentions that a page draws, as texts."""
    return [re.sub(r"<[^>]*>", "", found[0]) for found in re.finditer(r'<(a|bdi) class="mention[ "].*?</\1>', html)]


def post_embed(channel: Channel, wilma: ChatUser, pier: Channel, role_id: int) -> int:
    """Post a message with an embed that mentions each; return its ID."""
    embed = {
        "title": "Rota",
        "description": f"<@{wilma.pk}> of <@&{role_id}>",
        "fields": [{"name": "Place", "value": f"<#{pier.pk}> <@{wilma.pk}>"}],
    }
    return post_message(channel.pk, author_id=fresh_id(), content="", embeds=[json.dumps(embed)]).message_id


@pytest.mark.parametrize("is_own_page", [False, True])
def test_an_embed_names_users_roles_and_channels(is_own_page: bool, mona: User, sign_in: SignIn) -> None:
    channel, pier, wilma = make_channel(guild="Harbour"), make_channel(name="pier"), make_author("wilma")
    assert channel.guild_id is not None
    save_member(channel.guild_id, wilma.pk, roles=[MemberRole("Crew", role_id=channel.pk + 1)])
    message_id = post_embed(channel, wilma, pier, channel.pk + 1)
    path = f"/channels/{channel.pk}/{message_id}/" if is_own_page else f"/channels/{channel.pk}/"
    html = sign_in(mona).get(path).content.decode()
    assert mentions_in(html) == [f"@{wilma.name}", "@Crew", "#pier", f"@{wilma.name}"]


def test_a_text_names_a_user_whom_its_sender_did_not_list(mona: User, sign_in: SignIn) -> None:
    channel, wilma, unknown = make_channel(), make_author("wilma"), fresh_id()
    post_message(channel.pk, author_id=fresh_id(), content=f"Ask <@{wilma.pk}> or <@{unknown}> or <@{'9' * 20}>")
    html = sign_in(mona).get(f"/channels/{channel.pk}/").content.decode()
    assert mentions_in(html) == [f"@{wilma.name}", f"@user {unknown}", f"@user {'9' * 20}"]


def test_mentions_in_embeds_are_read_with_those_in_texts(mona: User, sign_in: SignIn) -> None:
    client, wilma, pier = sign_in(mona), make_author("wilma"), make_channel(name="pier")
    queries: list[int] = []
    for is_embed in (False, True):
        channel = make_channel(guild="Harbour")
        text = f"<@{wilma.pk}> <@&{channel.pk + 1}> <#{pier.pk}>"
        post_message(channel.pk, author_id=fresh_id(), content=text)
        if is_embed:
            for other in (make_author("ines"), make_author("omar")):
                post_embed(channel, other, make_channel(), channel.pk + 2)
        client.get(f"/channels/{channel.pk}/")
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/channels/{channel.pk}/rows/?before={2**62}").status_code == 200
        queries.append(len(captured))
    assert queries[0] == queries[1]
