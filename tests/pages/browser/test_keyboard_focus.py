"""Pages are used by keyboard, with a visible focus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import AuditEntry, Purge
from tests.chatstore.reports import report
from tests.moderation.channels import (
    VICTOR,
    by_victor,
    make_channel,
    name_authors,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)
from tests.pages.serving import Site, browse_as, create_account, sign_in

STOPS = 40
"""Elements that the Tab key reaches, from the top of the page and from its main part: a list of guilds may be long."""

FEWEST_STOPS = 15
"""Home without channels has about twenty."""

FOCUS = """() => {
  // No script can read the style of a slider's thumb, only the rules about it.
  const thumb = "::-webkit-slider-thumb";
  const outlinesThumb = (slider) => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).some((rule) =>
    (rule.selectorText || "").endsWith(thumb) && rule.style.outline.includes("solid") &&
    slider.matches(rule.selectorText.slice(0, -thumb.length)));
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const around = element.closest(".picker-box") || (element.matches("#searchbar") && element.parentElement);
  const outlined = [element, around, element.querySelector(":scope > .slot")].some((one) => {
    const style = one && getComputedStyle(one);
    return style && (style.outlineStyle !== "none" || (one.matches(".slot") && style.stroke !== "none"));
  }) || outlinesThumb(element);
  const box = element.getBoundingClientRect();
  const name = element.outerHTML.slice(0, 90);
  return { name, isShown: outlined && box.width > 0 && box.height > 0 };
}"""

PAGES = {
    "mona": (
        "/",
        "/channels/{channel}/",
        f"/delete/?authors={VICTOR}&channels={{channel}}",
        "/purges/{purge}/",
        "/purges/{deleted}/undo/",
        "/raids/{channel}/",
        "/reports/",
        "/purges/",
        "/purges/{purge}/messages/",
        "/holds/",
        f"/users/{VICTOR}/",
        "/find/?q=victor",
        "/preferences/",
    ),
    "otto": (
        "/",
        "/health/channels/",
        "/channels/{channel}/health/",
        "/health/",
        "/maintenance/",
        "/maintenance/jobs/repair/",
    ),
    "ada": (
        "/audit/",
        "/audit/{audit}/",
        "/admin/chatstore/channel/",
        "/roles/",
        "/guilds/{guild}/raid-settings/",
    ),
}
"""Pages in which most elements of all pages occur, by role."""


def make_purge(moderator: str) -> Purge:
    """Write messages of two authors, and preview deleting those of one."""
    channel = make_channel(guild="Harbour")
    name_authors()
    write(channel, old_ids(5), content="buy")
    write(channel, recent_ids(12, minutes_ago=5), author=VICTOR + 1, content="good morning")
    return preview(User.objects.get(username=moderator), by_victor(channel))


def make_deleted_purge(moderator: str) -> Purge:
    """Delete messages, which can be restored."""
    channel = make_channel()
    write(channel, old_ids(5))
    return purge_now(User.objects.get(username=moderator), by_victor(channel))


@pytest.fixture(scope="module")
def visits(site: Site) -> Iterator[dict[str, tuple[Page, list[str]]]]:
    """Return a page of the browser that is signed in, and the URLs to visit, of each role."""
    accounts = {role: create_account(role) for role in PAGES}
    names = make_objects(accounts["mona"][0])
    urls = {role: [site.url + path.format(**names) for path in paths] for role, paths in PAGES.items()}
    with browse_as(accounts["mona"], site) as page:
        pages = {role: page if role == "mona" else open_as(account, site, page) for role, account in accounts.items()}
        yield {role: (pages[role], urls[role]) for role in PAGES}


def make_objects(moderator: str) -> dict[str, int]:
    """Return the IDs of what the pages show."""
    purge, deleted = make_purge(moderator), make_deleted_purge(moderator)
    channel = Channel.objects.get(pk=purge.selection["channels"][0])
    report(channel, old_ids(1)[0], author=VICTOR)
    audit = AuditEntry.objects.filter(purge=deleted).latest("id")
    names = {"channel": channel.pk, "purge": purge.pk, "deleted": deleted.pk, "audit": audit.pk}
    return names | {"guild": channel.guild_id or 0}


def open_as(account: tuple[str, str], site: Site, other: Page) -> Page:
    """Open a page signed in with an account, in the browser of another page."""
    browser = other.context.browser
    assert browser is not None
    page = browser.new_page(viewport=other.viewport_size)
    sign_in(page, site, account)
    return page


@pytest.mark.parametrize("role", PAGES)
def test_the_tab_key_reaches_everything_and_shows_where_it_is(
    role: str, visits: dict[str, tuple[Page, list[str]]]
) -> None:
    page, urls = visits[role]
    for url in urls:
        response = page.goto(url)
        assert response is not None
        assert response.ok, url
        page.locator("body:not(:has(#sidebar)), #sidebar[data-loaded]").first.wait_for(state="attached")
        stops = tab_through(page)
        page.locator("#main").focus()
        stops += tab_through(page)
        assert len(stops) > FEWEST_STOPS, url
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


def test_the_tools_of_a_row_show_while_one_of_them_has_the_focus(visits: dict[str, tuple[Page, list[str]]]) -> None:
    page, urls = visits["mona"]
    page.goto(urls[1])
    tools = page.locator(".msg").last.locator(".tools")
    expect(tools).to_have_css("opacity", "0")
    tools.locator("a, button").first.focus()
    expect(tools).to_have_css("opacity", "1")
