"""Pages are used by keyboard, with a visible focus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chatstore.models.users import User
from moderation.models import Purge
from tests.moderation.channels import VICTOR, by_victor, make_channel, name_authors, old_ids, preview, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account

STOPS = 40
"""Elements that the Tab key reaches, from the top of the page and from its main part: a list of guilds may be long."""

FEWEST_STOPS = 15
"""Home without channels has about twenty."""

FOCUS = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const outlined = [element, element.closest(".picker-box"), element.querySelector(":scope > .slot")].some((one) => {
    const style = one && getComputedStyle(one);
    return style && (style.outlineStyle !== "none" || (one.matches(".slot") && style.stroke !== "none"));
  });
  const box = element.getBoundingClientRect();
  const name = element.outerHTML.slice(0, 90);
  return { name, isShown: outlined && box.width > 0 && box.height > 0 };
}"""


def make_purge(moderator: str) -> Purge:
    """Write messages of two authors, and preview deleting those of one."""
    channel = make_channel()
    name_authors()
    write(channel, old_ids(5), content="buy")
    write(channel, recent_ids(12), author=VICTOR + 1, content="good morning")
    return preview(User.objects.get(username=moderator), by_victor(channel))


@pytest.fixture(scope="module")
def moderator(site: Site) -> Iterator[tuple[Page, list[str]]]:
    """Return a moderator's browser, and the URLs of pages in which most elements of all pages occur."""
    account = create_account("mona")
    purge = make_purge(account[0])
    channel = purge.selection["channels"][0]
    paths = ("/", f"/channels/{channel}/", f"/delete/?authors={VICTOR}&channels={channel}", f"/purges/{purge.pk}/")
    with browse_as(account, site) as page:
        yield page, [site.url + path for path in paths]


def test_the_tab_key_reaches_everything_and_shows_where_it_is(moderator: tuple[Page, list[str]]) -> None:
    page, urls = moderator
    for url in urls:
        page.goto(url)
        page.locator("#sidebar[data-loaded]").wait_for(state="attached")
        stops = tab_through(page)
        page.locator("#main").focus()
        stops += tab_through(page)
        assert len(stops) > FEWEST_STOPS
        assert [stop["name"] for stop in stops if not stop["isShown"]] == [], url


def tab_through(page: Page) -> list[dict[str, Any]]:
    """Press the Tab key; return the elements that got the focus, until it leaves the page."""
    stops: list[dict[str, Any]] = []
    for _ in range(STOPS):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop is None:
            break
        stops.append(stop)
    return stops


def test_the_tools_of_a_row_show_while_one_of_them_has_the_focus(moderator: tuple[Page, list[str]]) -> None:
    page, urls = moderator
    page.goto(urls[1])
    tools = page.locator(".msg").last.locator(".tools")
    expect(tools).to_have_css("opacity", "0")
    tools.locator("a, button").first.focus()
    expect(tools).to_have_css("opacity", "1")
