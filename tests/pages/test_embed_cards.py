"""The card of an embed below its message: all its parts as text, and only web addresses as links."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.models.users import User
from chatstore.store import ledger
from chatstore.store import messages as message_store
from tests.moderation.channels import VICTOR, make_channel, old_ids

SignIn = Callable[[User], Client]

REL = 'rel="noreferrer noopener nofollow"'

HOSTILE = '<b onclick="x">\u202e"\''
"""A tag, a handler, quotes, and a control character that reverses the text after it."""

INERT = "&lt;b onclick=&quot;x&quot;&gt;[RLO]&quot;&#x27;"


def draw_card(client: Client, embed: dict[str, Any]) -> str:
    """Post a message with an embed; return the HTML below the message's text, without line breaks."""
    channel, (message_id,) = make_channel(), old_ids(1)
    ledger.ensure_row(channel.pk, bucket_of(message_id))
    message = Message(channel.pk, message_id, VICTOR, "tide table", embeds=(json.dumps(embed),))
    message_store.insert_messages([message], stamp_us=message_store.posted_stamp)
    html = client.get(f"/channels/{channel.pk}/").content.decode()
    row = html[html.index(f'id="m{message_id}"') :].split("</article>")[0]
    return re.sub(r"\s*\n\s*", "", row[row.index("tide table") :])


def test_a_card_has_its_parts_in_order(mona: User, sign_in: SignIn) -> None:
    card = draw_card(
        sign_in(mona),
        {
            "author": {"name": "Harbour office", "url": "https://harbour.example/"},
            "title": "High water",
            "url": "https://tides.example/today",
            "description": "At **noon**",
            "fields": [{"name": "North pier", "value": "2.1 m"}, {"name": "South pier", "value": "1.9 m"}],
            "image": {"url": "https://tides.example/curve.png"},
            "footer": {"text": "Without warranty"},
            "color": 0x3366FF,
        },
    )
    parts = (
        '<div class="embed">',
        '<svg class="embed-edge" aria-hidden="true"><rect width="100%" height="100%" fill="#3366ff"/></svg>',
        f'<bdi class="quiet small"><a href="https://harbour.example/" {REL}>Harbour office</a></bdi>',
        f'<bdi><b><a href="https://tides.example/today" {REL}>High water</a></b></bdi>',
        "At <strong>noon</strong>",
        '<dl class="embed-fields"><div><dt dir="auto">North pier</dt><dd>',
        "2.1 m",
        '<dt dir="auto">South pier</dt><dd>',
        f'<a href="https://tides.example/curve.png" {REL}>Image from tides.example</a>',
        '<bdi class="quiet small">Without warranty</bdi></div>',
    )
    places = [card.find(part) for part in parts]
    assert -1 not in places, card
    assert places == sorted(places)
    # Styles are forbidden by the Content-Security-Policy.
    assert "style=" not in card


@pytest.mark.parametrize("color", [0, -1, 0x1000000, True, "red", '"/><script>', None, [1]])
def test_what_is_no_color_is_not_used_as_one(color: object, mona: User, sign_in: SignIn) -> None:
    card = draw_card(sign_in(mona), {"title": "High water", "color": color})
    assert "High water" in card
    assert "<rect" not in card


def test_a_card_with_hostile_texts_shows_them(mona: User, sign_in: SignIn) -> None:
    card = draw_card(
        sign_in(mona),
        {
            "author": {"name": f"a{HOSTILE}"},
            "title": f"t{HOSTILE}",
            "description": f"d{HOSTILE}",
            "fields": [{"name": f"n{HOSTILE}", "value": f"v{HOSTILE}"}],
            "footer": {"text": f"f{HOSTILE}"},
        },
    )
    for letter in "atnf":
        assert f"{letter}{INERT}" in card, letter
    # In texts with markdown a control character is marked as such.
    for letter in "dv":
        assert re.search(rf"{letter}&lt;b onclick=&quot;x&quot;&gt;<span class=\"control\"[^>]*>RLO</span>", card), (
            letter
        )
    assert "<b onclick" not in card
    assert "\u202e" not in card


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//tides.example/",
        "/users/71/",
        "tides.example",
    ],
)
def test_another_address_than_one_of_the_web_is_no_link(url: str, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    card = draw_card(client, {"title": "High water", "url": url, "image": {"url": url}})
    card = card[card.index('<div class="embed">') :].split("</div>")[0]
    assert card == '<div class="embed"><bdi><b>High water</b></bdi>'


def test_an_address_cannot_leave_its_link(mona: User, sign_in: SignIn) -> None:
    card = draw_card(sign_in(mona), {"title": "High water", "url": 'https://tides.example/"onmouseover="x\u202egpj'})
    link = re.search(r"<a [^>]*>High water</a>", card)
    assert link
    assert re.fullmatch(rf'<a href="https://tides\.example/[^"\u202e]*" {REL}>High water</a>', link[0])


def test_a_card_without_a_title_is_named_by_its_address(mona: User, sign_in: SignIn) -> None:
    card = draw_card(sign_in(mona), {"url": "https://tides.example/\u202egpj.exe"})
    assert f'<a href="https://tides.example/%E2%80%AEgpj.exe" {REL}>https://tides.example/' in card
    assert "\u202e" not in card


def test_an_embed_without_anything_to_show_has_no_card(mona: User, sign_in: SignIn) -> None:
    assert 'class="embed"' not in draw_card(sign_in(mona), {"type": "rich", "color": 5, "url": "javascript:x"})
