"""The value of a bar is shown below its strip while the bar is hovered or focused."""

from __future__ import annotations

import secrets

import pytest
from playwright.sync_api import Locator, expect

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from tests.moderation.channels import VICTOR, make_channel, now_ms, old_ids, preview, write
from tests.moderation.raids import write_raid
from tests.pages.serving import Site, browse_as, create_account, in_thread

PERIODS = (9, 5, 2)
"""Of ten days, ago."""


def make_history(author: int = VICTOR) -> Channel:
    """Create a channel with messages in several periods."""
    channel = make_channel()
    for ago in PERIODS:
        write(channel, old_ids(2, buckets_ago=ago), author=author)
    return channel


def preview_two_channels(name: str) -> int:
    """Return the ID of a purge of messages in two channels."""
    channels = tuple(make_history().pk for _ in range(2))
    moderator = User.objects.get(username=name)
    return preview(moderator, Selection(channel_ids=channels, where=Author((VICTOR,)))).pk


def expect_values_below(strip: Locator, line: Locator) -> None:
    """Hover a bar, and move the focus over others; the text below is the one that screen readers read."""
    page, bars = strip.page, strip.locator("a")
    labels = bars.evaluate_all("bars => bars.map(bar => bar.getAttribute('aria-label'))")
    assert len(set(labels)) == len(labels) > 1
    expect(line).to_be_empty()
    height = line.evaluate("line => line.closest('section').getBoundingClientRect().height")
    bars.last.focus()
    expect(line).to_have_text(labels[-1])
    page.keyboard.press("Home")
    expect(line).to_have_text(labels[0])
    bars.nth(1).hover()
    expect(line).to_have_text(labels[1])
    assert line.evaluate("line => line.closest('section').getBoundingClientRect().height") == height
    page.mouse.move(1, 1)
    expect(line).to_have_text(labels[0])
    bars.first.evaluate("bar => bar.blur()")
    expect(line).to_be_empty()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_value_of_a_period_is_shown_below_the_strip_of_a_timeline(width: int, site: Site) -> None:
    channel = in_thread(make_history)
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{site.url}/channels/{channel.pk}/")
        expect_values_below(page.locator("[data-strip] svg"), page.locator(".strip-value"))


def test_each_channel_of_a_purge_has_the_values_of_its_bars_below_them(site: Site) -> None:
    account = create_account("mona")
    purge_id = in_thread(lambda: preview_two_channels(account[0]))
    with browse_as(account, site) as page:
        page.goto(f"{site.url}/purges/{purge_id}/")
        strips, lines = page.locator("#times svg[role=group]"), page.locator("#times .strip-value")
        expect(lines).to_have_count(2)
        for number in range(2):
            expect_values_below(strips.nth(number), lines.nth(number))


def test_the_value_of_a_bucket_is_shown_on_the_pages_of_its_health(site: Site) -> None:
    channel = in_thread(make_history)
    with browse_as(create_account("otto"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/health/")
        expect_values_below(page.locator("[data-strip] svg"), page.locator(".strip-value"))


def test_the_value_of_a_time_is_shown_below_the_activity_of_a_user(site: Site) -> None:
    author = make_snowflake(now_ms()) | secrets.randbits(22)
    in_thread(lambda: make_history(author))
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/users/{author}/")
        expect_values_below(page.locator(".activity-strip"), page.locator(".strip-value"))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_value_of_a_minute_is_shown_below_the_chart_of_a_raid(width: int, site: Site) -> None:
    raid = in_thread(lambda: write_raid(raiders=25, apart_ms=2_400))
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{site.url}/raids/{raid.channel.pk}/")
        expect_values_below(page.locator(".raid-plot > svg"), page.locator(".strip-value"))
