"""The menu of an administrator, with more entries than a phone is wide, scrolls, and shows the current page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.pages.serving import Site, browse_as, create_account

PAGES = {"Home": "/", "Purges": "/purges/", "Operations": "/maintenance/", "Audit": "/audit/"}
FADE = 36


@pytest.mark.parametrize("width", [360, 390])
def test_the_current_entry_is_in_view_and_entries_stand_apart(site: Site, width: int) -> None:
    with browse_as(create_account("ada"), site) as page:
        page.set_viewport_size({"width": width, "height": 800})
        for name, path in PAGES.items():
            page.goto(site.url + path)
            expect_in_view(page, name)
        entries = [box for link in page.locator(".nav a").all() if (box := link.bounding_box())]
        assert len(entries) == 7
        # The words are at least two paddings apart.
        padding = float(page.locator(".nav a").first.evaluate("link => parseFloat(getComputedStyle(link).paddingLeft)"))
        assert padding >= 8
        assert float(page.locator(".nav").evaluate("nav => parseFloat(getComputedStyle(nav).fontSize)")) >= 13


def expect_in_view(page: Page, name: str) -> None:
    """Expect the entry to be the current one, and wholly beside the fades at the edges of a menu that scrolls."""
    menu, current = page.locator(".nav"), page.locator(".nav [aria-current]")
    expect(current).to_have_text(name)
    assert current.is_visible()
    around, box = menu.bounding_box(), current.bounding_box()
    assert around is not None
    assert box is not None
    scrolled, most = menu.evaluate("nav => [nav.scrollLeft, nav.scrollWidth - nav.clientWidth]")
    assert most > 0
    assert box["x"] >= around["x"] + (FADE if scrolled > most * 0.02 else 0)
    assert box["x"] + box["width"] <= around["x"] + around["width"] - (FADE if scrolled < most * 0.98 else 0)
