"""Messages as HTML: whatever a message contains, nothing of it becomes a tag, an attribute or another kind of URL."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from chatstore.domain.controls import show_hidden
from chatstore.models import Channel, ChatUser, Guild
from moderation.presentation.excerpts import COVERED
from moderation.presentation.extras import read_attachments, read_embeds
from moderation.presentation.media import may_load
from moderation.templatetags.message_extras import draw_extras
from moderation.templatetags.message_text import Names, draw_text

TEXT_TAGS = set("a b bdi blockquote code details div em li ol pre s span strong summary time ul".split())
EXTRA_TAGS = TEXT_TAGS | set("button dd dl dt p path svg".split())
ATTRIBUTES = set(
    "class data-alt data-height data-media data-width datetime dir href rel start tabindex title type".split()
)
SVG_ATTRIBUTES = set("aria-hidden aria-label d fill stroke stroke-width viewbox".split())

hostile = st.lists(
    st.sampled_from(
        [
            "**",
            "__",
            "~~",
            "||",
            "*",
            "_",
            "`",
            "```",
            "\n",
            "> ",
            "# ",
            "- ",
            "1. ",
            "</div>",
            "<script>",
            "<img src=x onerror=alert(1)>",
            '"',
            "'",
            "&lt;",
            "{{ 7|add:7 }}",
            "{}",
            "{0}",
            "%s",
            "%(x)s",
            "[a](https://h.example/",
            "[a](javascript:alert(1))",
            ")",
            "https://h.example/?q=",
            'onmouseover="x"',
            "<@5>",
            "<#7>",
            "<#99999999999999999999>",
            "<t:9999999999>",
            "<:e:1>",
            "@everyone",
            "\u202e",
            "\x00",
            "\u200b",
            "x",
        ]
    ),
    max_size=30,
).map("".join)

NAMES = Names(
    users={5: ChatUser(id=5, name='"><b>', display_name="\u202e<i>")},
    channels={7: Channel(id=7, name='<u>"', guild=Guild(id=8, name="<s>'"))},
    guild_id=1,
    may_view_users=True,
)


class Tags(HTMLParser):
    """Tags of a fragment, checked to be balanced, with their attributes, and the text outside of tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.urls: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.urls += [value or "" for name, value in attrs if name in ("href", "data-media")]
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "path"

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_inert(html: str, *, tags: set[str], attributes: set[str]) -> None:
    found = Tags(html)
    assert found.tags <= tags
    assert found.attributes <= attributes
    for url in found.urls:
        assert url.startswith(("https://", "http://", "/users/", "/channels/")), url
    assert not set("\x00\u202e") & set(html)


@given(st.text() | hostile)
def test_a_text_is_inert(text: str) -> None:
    check_inert(draw_text(text, NAMES), tags=TEXT_TAGS, attributes=ATTRIBUTES)


@given(hostile, hostile)
def test_attachments_and_embeds_are_inert(text: str, other: str) -> None:
    attachment = {"filename": f"{text}.png", "url": f"https://cdn.example/{other}", "width": 5, "height": 6}
    embed = {
        "title": text,
        "url": f"https://{other}",
        "description": other,
        "author": {"name": text},
        "footer": {"text": other},
        "fields": [{"name": text, "value": other}],
        "image": {"url": f"https://{text}"},
    }
    html = draw_extras(
        read_attachments([json.dumps(attachment)]),
        [show_hidden(text)],
        read_embeds([json.dumps(embed)]),
        {other or "x": 3},
        NAMES,
    )
    check_inert(html, tags=EXTRA_TAGS, attributes=ATTRIBUTES | SVG_ATTRIBUTES)


def test_users_and_channels_are_named_and_linked() -> None:
    html = draw_text("<@5> <@6> <#7> <#9>", NAMES)
    title = 'title="@&quot;&gt;&lt;b&gt; · 5"'
    assert f'<a class="mention user-mention" href="/users/5/" {title}><bdi>@[RLO]&lt;i&gt;</bdi></a>' in html
    assert '<a class="mention user-mention" href="/users/6/"><bdi>@user 6</bdi></a>' in html
    assert "<bdi>#&lt;u&gt;&quot; (&lt;s&gt;&#x27;)</bdi></a>" in html
    assert '<bdi class="mention">#9</bdi>' in html


def test_the_beginning_of_a_long_text_covers_spoilers_and_names_users() -> None:
    html = draw_text(f"**Rota** <@6>\n||secret|| {'word ' * 300}", NAMES)
    beginning = html[: html.index("</summary>")]
    assert f'dir="auto">Rota @user 6\n{COVERED} word' in beginning
    assert "secret" in html[len(beginning) :]


def test_a_spoiler_can_be_focused_and_a_label_has_its_host() -> None:
    assert '<span class="spoiler" tabindex="0" title="Spoiler"><span>secret</span></span>' in draw_text(
        "||secret||", NAMES
    )
    assert '>here</a> <bdi class="host">e.example</bdi>' in draw_text("[here](https://e.example/x)", NAMES)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://cdn.example/a.png", True),
        ("https://CDN.example/a.png", True),
        ("https://media.example:8443/a.png", True),
        ("http://cdn.example/a.png", False),
        ("https://cdn.example.evil.example/a.png", False),
        ("https://evil.example/cdn.example", False),
        ("https://cdn.example@evil.example/a.png", False),
        ("https://evil.example\\@cdn.example/a.png", False),
        ("https://evil.example/\\@cdn.example", False),
        ("https://media.example/a.png", False),
        ("https://[bad/a.png", False),
    ],
)
def test_images_are_loaded_from_allowed_hosts_only(url: str, allowed: bool, settings: Settings) -> None:
    settings.MEDIA_HOSTS = frozenset({"cdn.example", "media.example:8443"})
    assert may_load(url) is allowed
    html = draw_extras(read_attachments([json.dumps({"filename": "a.png", "url": url})]), [], [], {}, NAMES)
    assert ("data-media=" in html) is allowed
    assert "<img" not in html


def test_without_allowed_hosts_an_image_is_a_link() -> None:
    kept = json.dumps({"filename": "a.png", "url": "https://cdn.example/a.png", "width": 640, "height": 480})
    html = draw_extras(read_attachments([kept]), [], [], {}, NAMES)
    assert "data-media" not in html
    assert 'href="https://cdn.example/a.png"' in html
    assert "640 × 480" in html
