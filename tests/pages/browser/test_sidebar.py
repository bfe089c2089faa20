"""The list of servers and channels follows the activity each minute, unless it is in use or not seen."""

from __future__ import annotations

import datetime as dt

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel
from tests.moderation.channels import make_channel
from tests.pages.serving import Site, browse_as, create_account, in_thread

INTERVAL_MS = 60_000

COUNT_REQUESTS = """() => {
  window.requests = 0;
  document.addEventListener("htmx:beforeSend", (event) => { window.requests += event.target.id === "sidebar"; });
}"""

SET_HIDDEN = "isHidden => Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true })"
"""Headless Chromium shows all its pages."""


def make_guild() -> Channel:
    # Icons are listed if there are several.
    make_channel(guild="Harbour")
    return make_channel(guild="Tidewalkers", name="anchor")


def stop_clock(page: Page) -> None:
    """Let the page's time stand still unless it is moved."""
    page.clock.pause_at(dt.datetime.fromtimestamp(page.evaluate("() => Date.now()") / 1_000 + 1, dt.UTC))


@pytest.mark.parametrize("path", ["/channels/{channel}/", "/raids/{channel}/"])
def test_the_list_follows_each_minute_unless_it_is_hovered_focused_or_hidden(path: str, site: Site) -> None:
    channel = in_thread(make_guild)
    with browse_as(create_account("mona"), site) as page:
        page.clock.install()
        page.goto(site.url + path.format(channel=channel.pk))
        listed = page.get_by_role("navigation", name="Servers and channels").get_by_role("link")
        own = listed.and_(page.locator(f"[href^='/channels/{channel.pk}/']"))
        expect(own).to_be_visible()
        stop_clock(page)
        page.evaluate(COUNT_REQUESTS)

        in_thread(lambda: make_channel(guild=channel.guild, name="ballast"))
        page.clock.fast_forward(INTERVAL_MS)
        expect(listed.filter(has_text="ballast")).to_be_visible()

        for begin, end in (
            (own.hover, lambda: page.mouse.move(900, 5)),
            (own.focus, lambda: page.locator("#main").focus()),
            (lambda: page.evaluate(SET_HIDDEN, True), lambda: page.evaluate(SET_HIDDEN, False)),
        ):
            before = page.evaluate("() => window.requests")
            begin()
            page.clock.fast_forward(INTERVAL_MS)
            assert page.evaluate("() => window.requests") == before
            end()
            with page.expect_response("**/sidebar/**"):
                page.clock.fast_forward(INTERVAL_MS)
            assert page.evaluate("() => window.requests") == before + 1
            expect(own).to_be_visible()
