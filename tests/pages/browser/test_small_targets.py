"""The check of pages reports targets that are too small, but not those that only a scrolled page has no room for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.pages.accessibility import violations_of
from tests.pages.serving import browse

HEIGHT = 600

PAGE = """<!doctype html><html lang="en"><title>Links</title>
<main style="padding: 520px 20px 2000px"><h1 style="font-size: 14px; margin: 0">Links</h1>%s</main>
<nav style="position: sticky; bottom: 0; background: white">
  <a href="/newest" style="display: block; height: 44px">Newest messages</a>
</nav></html>"""

LINK = '<a href="/%s" style="display: block; width: 60px; height: %dpx; overflow: hidden; line-height: 1">%s</a>'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browse() as browser:
        yield browser.new_page(viewport={"width": 800, "height": HEIGHT})


def test_a_link_beside_a_bar_that_stays_in_place_is_not_too_small(page: Page) -> None:
    page.set_content(PAGE % LINK % ("one", 16, "One"))
    link = page.get_by_role("link", name="One").bounding_box()
    bar = page.get_by_role("link", name="Newest messages").bounding_box()
    assert link is not None
    assert bar is not None
    assert link["y"] < bar["y"] < link["y"] + 24
    assert violations_of(page, only=["target-size"]) == []
    assert page.evaluate("scrollY") == 0


def test_links_that_are_too_close_to_each_other_are_reported_wherever_they_are(page: Page) -> None:
    page.set_content(PAGE % (LINK % ("one", 10, "One") + LINK % ("two", 10, "Two")))
    for top in (0, 40, 300):
        page.evaluate("top => scrollTo(0, top)", top)
        assert len(violations_of(page, only=["target-size"])) == 1
        assert page.evaluate("scrollY") == top
