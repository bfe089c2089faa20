"""Targets that are used often, in timelines and in the composer, have 24 px in each direction, on phones too.

The check of pages allows smaller ones that are far enough from others.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from chatstore.models import Channel
from tests.moderation.channels import VICTOR, WILMA, make_channel, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

MIN_PX = 24

IN_TIMELINE = (
    ".msg .tools > *",
    ".msg:not(.continued) .select-box",
    ".msg.continued .select-box",
    "[data-more='older']",
)
IN_PAST = ("[data-more='older']", "[data-more='newer']", ".to-newest a")
IN_COMPOSER = (".check", ".picked button", ".presets button", ".time > button")

# In one step: rows that are loaded while the page is read replace the link that loads them.
SIZES = """selector => [...document.querySelectorAll(selector)].map((target) => {
  const { width, height } = target.getBoundingClientRect();
  return [target.outerHTML.slice(0, 80), width, height];
})"""


def write_long() -> tuple[Channel, list[int]]:
    """Write more messages than three pages have, most of them in runs."""
    channel, ids = make_channel(), recent_ids(200)
    for number in range(0, len(ids), 10):
        write(channel, ids[number : number + 10], author=VICTOR if number % 20 else WILMA)
    return channel, ids


def small_targets(page: Page, selector: str) -> list[tuple[str, float, float]]:
    found = [tuple(each) for each in page.evaluate(SIZES, selector)]
    assert found, selector
    return [each for each in found if min(each[1:]) < MIN_PX]


@pytest.mark.parametrize("width", [360, 1280])
def test_targets_are_large_enough(width: int, site: Site) -> None:
    channel, ids = in_thread(write_long)
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": width, "height": 800})
        pages = {
            f"/channels/{channel.pk}/#end": IN_TIMELINE,
            f"/channels/{channel.pk}/?around={ids[100]}#m{ids[100]}": IN_PAST,
            f"/channels/{channel.pk}/delete/?authors={VICTOR},{WILMA}": IN_COMPOSER,
        }
        for path, selectors in pages.items():
            # The address of the page that is open would only be scrolled to.
            page.goto("about:blank")
            page.goto(f"{site.url}{path}")
            page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")
            for selector in selectors:
                assert small_targets(page, selector) == []
