"""Notices of raids: the newest ones, one for all others, and in the admin too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.domain.runs import Severity
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store import activity
from chatstore.store.redis import redis_client
from moderation.operations.raids.detection import MAX_NOTICES, RAID
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, now_ms, recent_ids, write
from tests.moderation.raids import forget_raids
from tests.pages.conftest import PreviewedPurge, make_previewed_purge
from tests.pages.reading import read_page
from tests.pages.whole_pages import read_pages

SignIn = Callable[[User], Client]

NOTICE = re.compile(r'<p class="page-notice critical">.*?<span>\s*(Raid \d+)', re.DOTALL)

FEWEST_PAGES = 5
"""Staff without a role have six."""


@pytest.fixture(autouse=True)
def _no_raids() -> Iterator[None]:
    forget_raids()
    yield
    forget_raids()


def report_raids(count: int) -> list[Channel]:
    """Report a raid in each of some new channels of a new guild."""
    first = make_channel(guild="Gophers")
    channels = [first, *(make_channel(guild=first.guild) for _ in range(count - 1))]
    for channel in channels:
        open_finding(RAID, str(channel.pk), Problem(Severity.CRITICAL, f"Raid {channel.pk}", {"since_ms": now_ms()}))
    return channels


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (0, ""),
        (1, "1 more possible raid; its channel is marked"),
        (2, "2 more possible raids; their channels are marked"),
    ],
)
def test_raids_beyond_the_newest_are_counted(more: int, text: str, sign_in: SignIn) -> None:
    channels = report_raids(MAX_NOTICES + more)
    make_channel(guild="Elsewhere")
    gina = make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=channels[0].guild_id)
    html = read_page(sign_in(gina), "/preferences/")
    assert html.count("page-notice critical") == MAX_NOTICES + (more > 0)
    assert text in html
    assert ("more possible raid" in html) == (more > 0)


def test_all_of_them_are_marked_and_come_first_on_the_page_that_the_notice_links(mona: User, sign_in: SignIn) -> None:
    channels = report_raids(MAX_NOTICES + 1)
    quiet = make_channel(guild=channels[0].guild)
    for channel, minutes in [(quiet, 0), *((channel, 30) for channel in channels)]:
        write(channel, recent_ids(1, minutes_ago=minutes))
        redis_client().zadd(activity.KEY, {str(channel.pk): now_ms() / 1_000 - 60 * minutes})
    html = read_page(sign_in(mona), "/")
    cards = re.findall(r'<a class="channel-card" href="/channels/(\d+)/#end">(.*?)</a>', html, re.DOTALL)
    raided = [int(channel_id) for channel_id, card in cards if "raid-mark" in card]
    assert sorted(raided) == sorted(channel.pk for channel in channels)
    assert [int(channel_id) for channel_id, _card in cards[: len(raided)]] == raided
    assert quiet.pk in [int(channel_id) for channel_id, _card in cards]


def test_a_raid_is_on_pages_of_the_admin_too(ada: User, sign_in: SignIn) -> None:
    (channel,) = report_raids(1)
    for path in ("/admin/", "/admin/moderation/auditentry/", "/admin/chatstore/channel/"):
        html = read_page(sign_in(ada), path)
        assert f"Raid {channel.pk}" in html
        assert f'href="/raids/{channel.pk}/"' in html
    forget_raids()
    assert "page-notice critical" not in read_page(sign_in(ada), "/admin/")


@pytest.mark.alone
@pytest.mark.parametrize(
    ("group", "may_act"),
    [
        ("moderators", True),
        ("leads", True),
        ("admins", True),
        ("auditors", False),
        ("operators", False),
        (None, False),
    ],
)
def test_every_page_has_the_notice_for_those_who_may_act_only(group: str | None, may_act: bool) -> None:
    check_pages(make_user("mona", group=group), make_previewed_purge(), report_raids(1)[0], is_noticed=may_act)


@pytest.mark.alone
@pytest.mark.parametrize("is_there", [True, False])
def test_every_page_of_a_moderator_has_the_notice_of_their_server_only(is_there: bool) -> None:
    made, (channel,) = make_previewed_purge(), report_raids(1)
    gina = make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=channel.guild_id if is_there else made.channel.guild_id)
    check_pages(gina, made, channel, is_noticed=is_there)


def check_pages(user: User, made: PreviewedPurge, raided: Channel, *, is_noticed: bool) -> None:
    """Read each page of the user, and assert that it has the notice of the raid, or no notice of any."""
    pages = read_pages(user, made)
    if is_noticed:
        # The page of a link for new accounts has no notices.
        pages = {path: html for path, html in pages.items() if not path.startswith("/invitation/")}
    assert len(pages) >= FEWEST_PAGES
    notices = {path: NOTICE.findall(html) for path, html in pages.items()}
    expected = [f"Raid {raided.pk}"] if is_noticed else []
    assert {path: found for path, found in notices.items() if found != expected} == {}


def test_an_open_page_fetches_its_notices_without_what_it_shows_itself(mona: User, sign_in: SignIn) -> None:
    one, other = report_raids(2)
    client = sign_in(mona)

    def shown_on(path: str) -> list[str]:
        html = read_page(client, path)
        (url,) = re.findall(r'id="notices"\s+hx-get="([^"]+)"', html)
        fetched = NOTICE.findall(read_page(client, unescape(url)))
        assert fetched == NOTICE.findall(html)
        return sorted(fetched)

    assert shown_on("/preferences/") == sorted([f"Raid {one.pk}", f"Raid {other.pk}"])
    assert shown_on(f"/raids/{one.pk}/") == [f"Raid {other.pk}"]
