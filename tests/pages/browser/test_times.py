"""Fields for times and days: the browser's calendar and periods fill them in, and the summary says what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread


def make_channel_with_messages() -> int:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(3))
    return channel.pk


@pytest.fixture
def composer(site: Site) -> Iterator[Page]:
    account = create_account("mona")
    channel_id = in_thread(make_channel_with_messages)
    with browse_as(account, site) as page:
        page.goto(f"{site.url}/channels/{channel_id}/delete/")
        yield page


def test_a_period_fills_in_both_times_and_searches_anew(composer: Page) -> None:
    matches, summary = (composer.get_by_role("region", name=name) for name in ("First matches", "Summary"))
    composer.locator("#after").fill("2015-01-02")
    expect(matches).to_contain_text("3 matches")
    composer.get_by_role("button", name="Yesterday", exact=True).click()
    expect(composer.locator("#after")).to_have_value("yesterday")
    expect(composer.locator("#before")).to_have_value("today")
    expect(matches).to_contain_text("0 matches")
    composer.get_by_role("button", name="Last hour").click()
    expect(composer.locator("#before")).to_have_value("")
    expect(summary).to_contain_text(re.compile("since .+"))
    composer.get_by_role("button", name="Any time").click()
    expect(composer.locator("#after")).to_have_value("")
    expect(summary).not_to_contain_text("since")


def test_a_day_and_a_time_are_chosen_from_the_browsers_calendar(composer: Page) -> None:
    composer.locator("#after").fill("2026-03-11 14:30")
    composer.get_by_role("button", name="Choose the day and time from which").first.click()
    calendar = composer.locator("[data-time]", has=composer.locator("#after")).locator("[type=datetime-local]")
    expect(calendar).to_have_value("2026-03-11T14:30")
    calendar.fill("2026-03-12T09:05")
    expect(composer.locator("#after")).to_have_value("2026-03-12 09:05")
    expect(composer.get_by_role("region", name="Summary")).to_contain_text(re.compile("since 12 Mar[a-z]* 2026, 09:05"))


def test_the_calendar_begins_at_the_present_time_of_the_viewer(composer: Page) -> None:
    composer.get_by_role("button", name="Choose the day and time until which").first.click()
    calendar = composer.locator("[data-time]", has=composer.locator("#before")).locator("[type=datetime-local]")
    expect(calendar).to_have_value(re.compile(r"^20\d\d-\d\d-\d\dT\d\d:\d\d$"))
    expect(composer.locator("#before")).to_have_value("")


def test_a_day_of_a_filter_is_chosen_from_the_browsers_calendar(site: Site) -> None:
    with browse_as(create_account("otto"), site) as page:
        page.goto(f"{site.url}/maintenance/runs/")
        field = page.get_by_role("textbox", name="From")
        calendar = page.locator("[data-time]", has=field).locator("[type=date]")
        expect(calendar).to_have_value(re.compile(r"^20\d\d-\d\d-\d\d$"))
        field.fill("2026-03-11")
        page.get_by_role("button", name="Choose the first day").click()
        expect(calendar).to_have_value("2026-03-11")
        calendar.fill("2026-03-12")
        expect(field).to_have_value("2026-03-12")
        # As the server fills it in.
        page.goto(f"{site.url}/maintenance/runs/?since=2026-03-12")
        expect(field).to_have_value("12 Mar 2026")
        page.get_by_role("button", name="Choose the first day").click()
        expect(calendar).to_have_value("2026-03-12")
