"""The list of reports scrolls to the open one, and the page stays at its heading."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.pages.browser.test_report_keys import make_cases
from tests.pages.serving import Site, browse_as, create_account, in_thread

FADE_PX = 48
"""Where the list fades, at the edge below which there is more."""

FROM_THE_EDGES = """() => {
  const row = document.querySelector(".case-link[aria-current]").getBoundingClientRect();
  const list = document.querySelector(".case-list ul").getBoundingClientRect();
  return [row.top - list.top, list.bottom - row.bottom];
}"""


def test_the_list_scrolls_to_the_open_report_but_the_page_does_not(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        cases = in_thread(lambda: make_cases(30))
        page.goto(f"{site.url}/reports/{cases[14].pk}/")
        expect(page.locator(".case-link[aria-current]")).to_be_in_viewport()
        assert page.evaluate("document.querySelector('.case-list ul').scrollTop") > 0
        assert page.evaluate("window.scrollY") == 0
        above, below = page.evaluate(FROM_THE_EDGES)
        assert above >= FADE_PX
        assert below >= FADE_PX


def test_the_way_back_comes_before_the_neighbours_on_a_phone(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        cases = in_thread(lambda: make_cases(3))
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(f"{site.url}/reports/{cases[1].pk}/")
        links = [page.get_by_role("link", name=name) for name in ("All reports", "Previous", "Next")]
        tops = [link.evaluate("link => link.getBoundingClientRect().top") for link in links]
        assert tops[0] < tops[1] == tops[2]
