"""On phones: the menu, with more entries than fit, scrolls and shows the current page; the channels are a drawer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel
from tests.moderation.channels import make_channel
from tests.pages.serving import Site, browse_as, create_account, in_thread

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


def test_the_channels_are_a_drawer_that_closes_by_keys_and_by_a_tap_beside_it(site: Site) -> None:
    opened, other = in_thread(make_neighbours)
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/channels/{opened.pk}/")
        button = page.get_by_role("button", name="Channels", exact=True)
        drawer = page.get_by_role("navigation", name="Servers and channels")
        link = drawer.locator(f"a[href^='/channels/{other.pk}/']")
        expect(drawer).to_be_hidden()
        closings: list[Callable[[], None]] = [
            lambda: page.keyboard.press("Escape"),
            lambda: button.press("Enter"),
            lambda: page.mouse.click(380, 500),
        ]
        for close in closings:
            button.click()
            expect(link).to_be_in_viewport(ratio=1)
            close()
            expect(drawer).to_be_hidden()
        assert page.url == f"{site.url}/channels/{opened.pk}/"
        button.click()
        link.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(other.name)
        expect(drawer).to_be_hidden()


def test_filters_keep_their_order_and_the_current_one_is_in_view(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/purges/")
        pills = page.locator("nav.filters > a")
        links = [link.get_attribute("href") for link in pills.all()]
        page.goto(f"{site.url}/purges/{links[-1]}")
        expect(page.locator("nav.filters > [aria-current]")).to_be_in_viewport(ratio=1)
        lefts = [box["x"] for pill in pills.all() if (box := pill.bounding_box())]
        assert len(lefts) == len(links)
        assert lefts == sorted(lefts)
        assert page.evaluate("scrollY") == 0
        # None is cut hard at an edge: there they fade, as the menu does.
        pixels = page.locator("nav.filters").evaluate("row => getComputedStyle(row).maskImage")
        assert "linear-gradient" in pixels


def make_neighbours() -> tuple[Channel, Channel]:
    """Return two channels of a guild."""
    first = make_channel(guild="Harbour", name="pier")
    return first, make_channel(guild=first.guild, name="quay")


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
