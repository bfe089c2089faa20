"""Home shows the newest message of each active channel in words."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.test import Client

from chatstore.gateway import post_message
from chatstore.models import ChatUser
from chatstore.models.users import User
from chatstore.store.activity import last_active_channels, posts_of_hour
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import make_channel
from tests.waiting import wait_until

SignIn = Callable[[User], Client]


def test_a_card_names_those_whom_the_newest_message_mentions(mona: User, sign_in: SignIn) -> None:
    channel, name = make_channel(guild="Harbour"), f"Ines {secrets.token_hex(4)}"
    mentioned = ChatUser.objects.create(pk=fresh_id(), name=name)
    post_message(channel.pk, author_id=fresh_id(), content=f"Ask **<@{mentioned.pk}>**", mentions=[mentioned.pk])
    wait_until(lambda: channel.pk in last_active_channels(20))
    assert f"<bdi>Ask @{name}</bdi>" in sign_in(mona).get("/").content.decode()


def test_a_card_tells_apart_authors_whose_names_are_unknown(mona: User, sign_in: SignIn) -> None:
    channel, author_id = make_channel(guild="Harbour"), fresh_id()
    post_message(channel.pk, author_id=author_id, content="hello")
    wait_until(lambda: channel.pk in last_active_channels(20))
    assert f"<bdi>user {author_id}</bdi>" in sign_in(mona).get("/").content.decode()


def test_a_card_has_the_name_that_a_webhook_gave_its_message(mona: User, sign_in: SignIn) -> None:
    channel, name, webhook_id = make_channel(guild="Harbour"), f"Tide clock {secrets.token_hex(4)}", fresh_id()
    post_message(channel.pk, author_id=webhook_id, content="hello", webhook_id=webhook_id, author_name=name)
    wait_until(lambda: channel.pk in last_active_channels(20))
    assert f"<bdi>{name}</bdi>:" in sign_in(mona).get("/").content.decode()


def test_a_card_has_the_number_of_messages_of_the_last_hour(mona: User, sign_in: SignIn) -> None:
    channel, word = make_channel(guild="Harbour"), f"tide-{secrets.token_hex(4)}"
    for number in range(3):
        post_message(channel.pk, author_id=fresh_id(), content=f"{word} {number}")
    wait_until(lambda: sum(posts_of_hour([channel.pk]).get(channel.pk, ())) == 3)
    html = sign_in(mona).get("/").content.decode()
    (card,) = [card for card in html.split('class="channel-card"') if f"<bdi>{word} 2</bdi>" in card]
    assert "<bdi>Harbour</bdi> · 3 in the last hour" in card
