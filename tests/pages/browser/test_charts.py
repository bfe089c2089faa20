"""Charts show the values of a day on hover, and by the arrow keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from chatstore.models import ChannelDay
from chatstore.operations.coordination.clock import postgres_now
from tests.moderation.channels import make_channel
from tests.pages.serving import Site, browse_as, create_account

DAYS = 10


@pytest.fixture
def chart(site: Site) -> Iterator[tuple[Page, Locator]]:
    """Return an operator's browser, and a chart with a value for each of ten days: 11 tombstones ten days ago to 20."""
    account, channel, today = create_account("otto"), make_channel(), postgres_now().date()
    for number in range(DAYS):
        day = today - dt.timedelta(days=DAYS - 1 - number)
        ChannelDay.objects.create(channel_id=channel.pk, day=day, tombstones=11 + number)
    with browse_as(account, site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/health/")
        yield page, page.locator("svg[data-chart]").first


def shown(chart: Locator) -> list[str]:
    """Return the values that are visible."""
    values: list[str] = chart.locator(".value").evaluate_all(
        "values => values.filter(one => getComputedStyle(one).visibility === 'visible').map(one => one.textContent)"
    )
    return values


def test_a_value_is_shown_while_the_pointer_is_over_its_day(chart: tuple[Page, Locator]) -> None:
    page, drawn = chart
    assert shown(drawn) == []
    days = drawn.locator(".day")
    expect(days).to_have_count(DAYS)
    days.nth(3).locator(".hover").hover()
    (value,) = shown(drawn)
    assert "14" in value
    page.mouse.move(1, 1)
    assert shown(drawn) == []


def test_keys_move_from_day_to_day_and_name_the_value(chart: tuple[Page, Locator]) -> None:
    page, drawn = chart
    expect(drawn).to_have_role("slider")
    drawn.focus()
    for key, day in (
        ("", DAYS),
        ("ArrowLeft", 9),
        ("ArrowLeft", 8),
        ("ArrowRight", 9),
        ("Home", 1),
        ("ArrowLeft", 1),
        ("PageUp", 8),
        ("PageUp", DAYS),
        ("PageDown", 3),
        ("End", DAYS),
    ):
        if key:
            page.keyboard.press(key)
        expect(drawn).to_have_attribute("aria-valuenow", str(day))
        (value,) = shown(drawn)
        assert str(10 + day) in value
        expect(drawn).to_have_attribute("aria-valuetext", value)
    page.keyboard.press("Tab")
    assert shown(drawn) == []
