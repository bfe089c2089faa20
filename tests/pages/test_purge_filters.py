"""The list of purges shows every filter in force, also one that only a link sets, and how to clear it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models.users import User
from tests.moderation.channels import by_victor, make_channel, old_ids, purge_now, write
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]


def chips_of(page: str) -> dict[str, str]:
    """Return the URLs of the pressed filters by their labels."""
    filters = page.split('class="filters"')[1].split("</nav>", maxsplit=1)[0]
    pressed = re.findall(r'<a\s+href="([^"]*)"\s+aria-current="true"\s*>(.*?)</a>', filters, re.DOTALL)
    return {text_of(label): html.unescape(url) for url, label in pressed}


def text_of(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", markup).split())


def empty_text_of(page: str) -> str:
    return text_of(page.split('class="empty"')[1].split(">", 1)[1].split("</p>", maxsplit=1)[0])


def test_the_moderator_of_a_link_is_a_pressed_filter_that_clears_it(mona: User, lena: User, sign_in: SignIn) -> None:
    page = read_html(sign_in(lena), f"/purges/?by={mona.username}&state=done")
    assert chips_of(page) == {"Done": "?by=" + mona.username + "&state=done", f"By {mona.username} ×": "?state=done"}
    assert empty_text_of(page) == "No purges match the filters above. Show all"


def test_the_channel_of_a_link_is_a_pressed_filter_that_clears_it(mona: User, sign_in: SignIn) -> None:
    channel, client = make_channel(), sign_in(mona)
    page = read_html(client, f"/purges/?channel={channel.pk}")
    assert chips_of(page) == {"In #room ×": "?"}
    assert empty_text_of(page) == "No purges match the filters above. Show all"
    write(channel, old_ids(2))
    purge_now(mona, by_victor(channel))
    assert chips_of(read_html(client, f"/purges/?channel={channel.pk}")) == {"In #room ×": "?"}


def test_a_channel_that_cannot_be_opened_is_called_as_typed(mona: User, sign_in: SignIn) -> None:
    assert list(chips_of(read_html(sign_in(mona), "/purges/?channel=5"))) == ["In 5 ×"]


@pytest.mark.parametrize("view", ["", "view=deleted&"])
def test_filters_with_an_entry_of_their_own_are_not_repeated(mona: User, sign_in: SignIn, view: str) -> None:
    page = read_html(sign_in(mona), f"/purges/?{view}by={mona.username}")
    assert list(chips_of(page)) == (["By me"] if view else ["All"])


def test_what_another_moderator_deleted_recently_is_a_pressed_filter(mona: User, lena: User, sign_in: SignIn) -> None:
    page = read_html(sign_in(lena), f"/purges/?view=deleted&by={mona.username}")
    assert list(chips_of(page)) == [f"By {mona.username} ×"]
    assert empty_text_of(page) == "No purges match the filters above. Show all"
