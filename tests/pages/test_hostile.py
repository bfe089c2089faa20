"""User content breaks no page: every field of an imported message attacks, and all of it is rendered as text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import choose, make_channel, old_ids, preview, write
from tests.pages.exports import write_hostile

SignIn = Callable[[User], Client]

_OUR_TAGS = set(
    (
        "a abbr article aside b bdi blockquote body br button circle code datalist dd details dialog div dl dt em "
        "fieldset figcaption figure form g h1 h2 h3 h4 head header html img input kbd label legend li line link main "
        "meta nav noscript ol option p path polyline pre progress rect s script section select span strong summary "
        "svg symbol table tbody template td text textarea th thead time title tr ul use"
    ).split()
)


@pytest.fixture
def hostile_channel(tmp_path: Path) -> int:
    channel_id, path = write_hostile(tmp_path, until=dt.datetime.now(dt.UTC))
    call_command("import_discord", str(path), verbosity=0)
    return channel_id


def check_harmless(html: str) -> None:
    """Check that no script, handler, style, foreign link or raw control character of a message reached the page."""
    assert re.search(r"<script(?! src=\"/static/)", html) is None
    tags = re.findall(r"<[a-z][^>]*>", html)
    assert not [tag for tag in tags if re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', '""', tag))]
    assert not [tag for tag in tags if re.search(r"\sstyle\s*=", re.sub(r'"[^"]*"', '""', tag))]
    assert {tag.strip("<>").split()[0] for tag in tags} <= _OUR_TAGS
    links = re.findall(r'(?:href|src|action)="([^"]*)"', html)
    assert all(link.startswith(("/", "#", "?", "https://", "http://")) for link in links), links
    assert not set("\x00\x07\x1b\u202e\u2066") & set(html)
    assert not [tag for tag in ("<i>title", "<u>", "<h1>hostile", "<b>[RLO]") if tag in html]


def test_a_timeline_shows_hostile_content_as_text(hostile_channel: int, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/channels/{hostile_channel}/").content.decode()
    check_harmless(html)
    assert "&lt;script&gt;alert(&#x27;content&#x27;)&lt;/script&gt;" in html
    assert "{{ 7|add:7 }}" in html
    assert "Show all 9,000 characters" in html
    assert html.count("🎉") <= 2 * 2000 + 500


def test_external_links_send_no_referrer(hostile_channel: int, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/channels/{hostile_channel}/").content.decode()
    outward = re.findall(r'<a href="https?://[^>]*>', html)
    assert outward
    assert all('rel="noreferrer noopener nofollow"' in link for link in outward)


def test_control_characters_in_a_url_are_encoded_in_its_link(hostile_channel: int, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/channels/{hostile_channel}/").content.decode()
    assert 'href="https://e.example/%E2%80%AEgpj.exe"' in html
    assert ">https://e.example/[RLO]gpj.exe</a>" in html
    assert 'href="https://exam%C2%ADple.example/%C2%9B%E2%81%A6"' in html


NAMES = {
    "\u200b\u200d\u200b": "[ZWSP][ZWJ][ZWSP]",
    "".join(chr(0xE0000 + ord(letter)) for letter in "mona"): "[TAG:mona]",
    "mo\u00adna": "mo[SHY]na",
    "mona": "mona",
}


def test_names_that_look_alike_are_distinguishable_everywhere(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for name, shown in NAMES.items():
        channel, author = make_channel(), fresh_id()
        Channel.objects.filter(pk=channel.pk).update(name=name)
        ChatUser.objects.create(pk=author, name=name, display_name=name)
        write(channel, old_ids(2), author=author, content=f"by <@{author}>")
        purge = preview(mona, choose(channel.pk, author_ids=[author]))
        for path in (
            f"/channels/{channel.pk}/",
            f"/channels/{channel.pk}/delete/",
            f"/users/{author}/",
            f"/users/{author}/panel/",
            f"/find/?q={author}",
            f"/purges/{purge.pk}/",
            f"/purges/{purge.pk}/messages/",
        ):
            html = client.get(path).content.decode()
            assert shown in html, path
            assert not re.search("[\u00ad\u200b\u200d\U000e0000-\U000e007f]", html), path


def test_the_other_pages_show_hostile_content_as_text_too(hostile_channel: int, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    purge = preview(mona, choose(hostile_channel, everything=True))
    for path in (
        f"/purges/{purge.pk}/",
        f"/purges/{purge.pk}/live/",
        f"/purges/{purge.pk}/messages/",
        f"/purges/{purge.pk}/messages/?author=5&channel={hostile_channel}",
        f"/channels/{hostile_channel}/delete/?authors=%3Cscript%3Ealert(1)%3C/script%3E%22onfocus=alert(1)",
        "/delete/?guild=%22%3E%3Cscript%3E&words=%22%3E%3Cscript%3E&none-pattern=%3Cscript%3E%22onfocus=alert(1)",
        f"/channels/{hostile_channel}/rows/?before={(1 << 63) - 1}",
        "/purges/",
        "/",
        "/find/?q=%3Cimg%20src",
        "/find/suggestions/?q=%3Cimg%20src",
        "/find/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
    ):
        response = client.get(path)
        assert response.status_code == 200, path
        check_harmless(response.content.decode())


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/channels/{}/?at=\u202e2024-01-01", 400),
        ("/channels/{}/rows/?before=\u202e5", 400),
        ("/channels/{}/?at=2999-01-01\u202e00:00", 400),
        ("/channels/{}/?at={}\u202e00:00", 200),
        ("/purges/?state=\u202ex", 400),
        ("/maintenance/runs/?since=\u202e2024", 400),
        ("/maintenance/runs/?job=\u202ex", 404),
        ("/maintenance/jobs/bookkeeping/preview/?cron=\u202e1 2 3 4 5&zone=UTC", 200),
    ],
)
def test_query_strings_are_escaped_on_every_page(
    path: str, status: int, hostile_channel: int, ada: User, sign_in: SignIn
) -> None:
    today = dt.datetime.now(dt.UTC).date()
    url = path.format(hostile_channel, today)
    for headers in ({}, {"HX-Request": "true"}):
        response = sign_in(ada).get(url, headers=headers)
        assert response.status_code == status
        check_harmless(response.content.decode())
