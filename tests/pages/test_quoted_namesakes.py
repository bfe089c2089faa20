"""Users who share a name are told apart where they are quoted, mentioned, or named on a channel's card."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import REPLY_TYPE, Message
from chatstore.domain.snowflakes import make_snowflake
from chatstore.gateway import post_message
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from chatstore.store import ledger
from chatstore.store import messages as message_store
from chatstore.store.activity import last_active_channels
from tests.conftest import make_user
from tests.moderation.channels import make_channel, old_ids
from tests.waiting import wait_until

SignIn = Callable[[User], Client]

MARCH_2024_MS = 1_710_115_200_000


def make_author(handle: str, shown: str) -> ChatUser:
    user_id = make_snowflake(MARCH_2024_MS) | secrets.randbits(22)
    return ChatUser.objects.create(pk=user_id, name=handle, display_name=shown)


def reply_to(author_id: int, *, webhook: str | None = None, mentions: str = "") -> Channel:
    """Write a message, and another author's reply to it."""
    channel, (first, second) = make_channel(), old_ids(2)
    ledger.ensure_row(channel.pk, bucket_of(first))
    quoted = Message(
        channel.pk, first, author_id, "spring tide", webhook_id=author_id if webhook else None, author_name=webhook
    )
    reply = Message(
        channel.pk, second, 9, f"Aye {mentions}", type=REPLY_TYPE, reference=(channel.pk, first), mentions=(author_id,)
    )
    message_store.insert_messages([quoted, reply], stamp_us=message_store.posted_stamp)
    return channel


def quote_in(client: Client, channel: Channel) -> str:
    """Return the text of the quote, in one line."""
    html = client.get(f"/channels/{channel.pk}/").content.decode()
    (quote,) = re.findall(r'<p class="quote">.*?</p>', html, re.DOTALL)
    return " ".join(re.sub(r'<span class="avatar.*?</span>|<[^>]*>', " ", quote).split())


@pytest.mark.parametrize("group", ["moderators", "operators"])
def test_a_quote_has_the_handle_of_an_author_with_a_namesake(group: str, sign_in: SignIn) -> None:
    name = f"Victor {secrets.token_hex(4)}"
    real, other = (make_author(handle, name) for handle in ("victor", "victor\u202edeals"))
    client = sign_in(make_user("otto", group=group))
    assert quote_in(client, reply_to(real.pk)).startswith(f"{name} @victor spring tide")
    assert quote_in(client, reply_to(other.pk)).startswith(f"{name} @victor[RLO]deals spring tide")


def test_a_quote_has_the_end_of_the_id_of_an_author_with_a_namesake_of_the_same_handle(
    mona: User, sign_in: SignIn
) -> None:
    name = f"Victor {secrets.token_hex(4)}"
    one, _other = (make_author("victor", name) for _ in range(2))
    assert quote_in(sign_in(mona), reply_to(one.pk)).startswith(f"{name} @victor {one.id_end} spring tide")


def test_a_quote_of_an_author_without_namesakes_has_the_name_alone(mona: User, sign_in: SignIn) -> None:
    name = f"Wilma {secrets.token_hex(4)}"
    author = make_author("wilma", name)
    assert quote_in(sign_in(mona), reply_to(author.pk)).startswith(f"{name} spring tide")


def test_a_quote_of_a_webhook_has_no_handle(mona: User, sign_in: SignIn) -> None:
    name = f"Victor {secrets.token_hex(4)}"
    one, _other = (make_author(handle, name) for handle in ("victor", "victor.deals"))
    assert quote_in(sign_in(mona), reply_to(one.pk, webhook="Tide clock")).startswith("Tide clock spring tide")


@pytest.mark.parametrize("group", ["moderators", "operators"])
def test_the_title_of_a_mention_has_the_handle_and_the_age_of_the_account(group: str, sign_in: SignIn) -> None:
    author = make_author("victor.deals", "Victor")
    channel = reply_to(author.pk, mentions=f"<@{author.pk}>")
    html = sign_in(make_user("otto", group=group)).get(f"/channels/{channel.pk}/").content.decode()
    (title,) = re.findall(r'class="mention(?: user-mention)?"[^>]* title="([^"]*)"', html)
    assert title.startswith("@victor.deals")
    assert title.endswith(f" · account created 11\u00a0Mar\u00a02024 · {author.pk}")


@pytest.mark.parametrize("group", ["moderators", "operators"])
def test_a_mention_has_the_handle_of_a_user_with_a_namesake_only(group: str, sign_in: SignIn) -> None:
    name, single = f"Victor {secrets.token_hex(4)}", f"Wilma {secrets.token_hex(4)}"
    real, _other = (make_author(handle, name) for handle in ("victor", "victor.deals"))
    wilma = make_author("wilma", single)
    channel = reply_to(real.pk, mentions=f"<@{real.pk}> and <@{wilma.pk}>")
    html = sign_in(make_user("otto", group=group)).get(f"/channels/{channel.pk}/").content.decode()
    assert re.findall(r'class="mention(?: user-mention)?"[^>]*>(?:<bdi>)?([^<]*)', html) == [
        f"@{name} (@victor)",
        f"@{single}",
    ]


def test_a_card_has_the_handle_of_an_author_with_a_namesake_only(mona: User, sign_in: SignIn) -> None:
    name, single = f"Victor {secrets.token_hex(4)}", f"Wilma {secrets.token_hex(4)}"
    author, _other = (make_author(handle, name) for handle in ("victor", "victor.deals"))
    channels = [make_channel(guild="Harbour") for _ in range(2)]
    for channel, person in zip(channels, (author, make_author("wilma", single)), strict=True):
        post_message(channel.pk, author_id=person.pk, content="spring tide")
    wait_until(lambda: {channel.pk for channel in channels} <= set(last_active_channels(20)))
    html = sign_in(mona).get("/").content.decode()
    assert f'<bdi>{name}</bdi> <bdi class="quiet">@victor</bdi>:\n<bdi>spring tide</bdi>' in html
    assert f"<bdi>{single}</bdi>:\n<bdi>spring tide</bdi>" in html
