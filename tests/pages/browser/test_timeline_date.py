"""The field that opens a timeline on a date follows the days that are shown."""

from __future__ import annotations

import datetime as dt

from playwright.sync_api import Page, expect

from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel
from moderation.presentation.formats import format_short_day
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread
from tests.waiting import wait_until

FIRST_IN_VIEW = """() => {
  const head = document.querySelector(".channel-top").getBoundingClientRect().bottom;
  const rows = [...document.querySelectorAll(".day, .msg")];
  const at = rows.findIndex((row) => row.matches(".msg") && row.getBoundingClientRect().bottom > Math.max(head, 0));
  return rows.slice(0, at).findLast((row) => row.matches(".day")).dataset.day;
}"""
REQUESTS = "() => performance.getEntriesByType('resource').filter((entry) => entry.name.includes('at=')).length"


def make_channel_of_many_days() -> tuple[Channel, dt.datetime]:
    """Return a channel with messages of several days, and the time of one in the middle."""
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids, content="long " * 60)
    return channel, time_of(ids[20])


def scroll(page: Page, pixels: int) -> None:
    """Scroll the timeline, and leave the field time to follow where it should not."""
    page.evaluate("pixels => scrollBy(0, pixels)", pixels)
    page.wait_for_timeout(300)


def day_in_view(page: Page) -> str:
    """Return the day of the first message in view, as the field prints days."""
    return format_short_day(dt.date.fromisoformat(page.evaluate(FIRST_IN_VIEW)))


def test_the_date_follows_the_first_message_in_view(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel, time = in_thread(make_channel_of_many_days)
        opened, field = format_short_day(time), page.locator("#at")
        page.goto(f"{site.url}/channels/{channel.pk}/?at={time:%Y-%m-%d}")
        expect(field).to_have_value(opened)
        scroll(page, 2400)
        wait_until(lambda: field.input_value() == day_in_view(page) != opened)
        day = day_in_view(page)
        assert page.evaluate(REQUESTS) == 0
        # What is typed is not replaced.
        field.fill("yesterday")
        field.blur()
        scroll(page, -1800)
        wait_until(lambda: day_in_view(page) != day)
        expect(field).to_have_value("yesterday")


def test_a_timeline_that_was_opened_at_its_end_has_no_date(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel, _ = in_thread(make_channel_of_many_days)
        page.goto(f"{site.url}/channels/{channel.pk}/")
        scroll(page, -1500)
        expect(page.locator("#at")).to_have_value("")
