"""Scrolling a channel that was opened in the past: rows are loaded at both ends, and those in view keep their place."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from chatstore.models import Channel
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, WILMA, make_channel, purge_now, recent_ids, write
from tests.pages.browser.loading import load_rest
from tests.pages.browser.posting import post_arrivals
from tests.pages.serving import Site, browse, browse_as, create_account, in_thread, sign_in

pytestmark = pytest.mark.slow

RAIDER = 77

SHOWN = "() => [...document.querySelectorAll('.msg')].map((row) => row.id.slice(1))"
TOP = "id => document.querySelector(`#${id} .text`).getBoundingClientRect().top"
IN_VIEW = f"""() => {{
  const head = document.querySelector(".channel-top").getBoundingClientRect().bottom;
  const isInView = (row) => row.getBoundingClientRect().bottom > Math.max(head, 0);
  const row = [...document.querySelectorAll(".msg")].find(isInView);
  return [row.id, ({TOP})(row.id)];
}}"""
NOTE_MOVES = f"""() => {{
  const inView = {IN_VIEW};
  window.moves = [];
  let before = null;
  const top = () => ({TOP})(before[0]);
  document.addEventListener("htmx:beforeSwap", () => {{ before = inView(); }});
  document.addEventListener("htmx:afterSwap", () => {{
    if (before) window.moves.push(top() - before[1]);
    before = null;
  }});
}}"""
"""Note by how much the text of the first row in view is moved each time when rows are loaded."""

TO_END, TO_BEGINNING = "() => scrollTo(0, document.documentElement.scrollHeight)", "() => scrollTo(0, 0)"
IS_AT_END = "() => scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
NEWER, OLDER = 'a[data-more="newer"]', 'a[data-more="older"]'


def make_long_channel() -> tuple[Channel, list[int]]:
    channel, ids = make_channel(), recent_ids(180)
    for author, alternate in ((VICTOR, ids[::2]), (WILMA, ids[1::2])):
        write(channel, alternate, author=author, content="long " * 40)
    return channel, ids


def make_cleared_channel() -> tuple[Channel, list[int]]:
    """Delete a raid among the first of the messages and the last; return the IDs of the others."""
    channel, ids = make_channel(), recent_ids(260)
    raid = [*ids[:60:2], *ids[200::2]]
    write(channel, raid, author=RAIDER)
    write(channel, [message_id for message_id in ids if message_id not in raid], content="long " * 40)
    purge_now(make_user("mona", group="moderators"), Selection(channel_ids=(channel.pk,), where=Author((RAIDER,))))
    return channel, [message_id for message_id in ids if message_id not in raid]


def open_at(page: Page, site: Site, channel: Channel, message_id: int) -> None:
    page.set_viewport_size({"width": 1280, "height": 700})
    page.goto(f"{site.url}/channels/{channel.pk}/?around={message_id}#m{message_id}")
    expect(page.locator(f"#m{message_id}")).to_be_in_viewport()
    page.evaluate(NOTE_MOVES)


def load_all(page: Page, link: str, scroll: str) -> None:
    """Scroll until there are no more rows at that end; the row in view keeps its place each time."""
    load_rest(page, link, ask=lambda: page.evaluate(scroll))
    moves = page.evaluate("window.moves")
    assert moves
    assert max(map(abs, moves)) <= 2, moves


def shown_ids(page: Page) -> list[int]:
    return [int(message_id) for message_id in page.evaluate(SHOWN)]


def test_rows_are_loaded_at_both_ends_and_those_in_view_keep_their_place(site: Site) -> None:
    channel, ids = in_thread(make_long_channel)
    with browse_as(create_account("mona"), site) as page:
        open_at(page, site, channel, ids[90])
        load_all(page, NEWER, TO_END)
        load_all(page, OLDER, TO_BEGINNING)
        assert shown_ids(page) == ids


def test_gaps_that_join_a_later_line_move_no_row_in_view(site: Site) -> None:
    channel, ids = in_thread(make_cleared_channel)
    with browse_as(create_account("mona"), site) as page:
        open_at(page, site, channel, ids[40])
        line = page.locator(".gap[data-total]")
        expect(line).to_have_count(1)
        load_all(page, NEWER, TO_END)
        expect(line).to_have_count(1)
        load_all(page, OLDER, TO_BEGINNING)
        expect(line).to_contain_text("60 messages deleted")
        assert shown_ids(page) == ids


def test_a_message_that_arrives_while_the_last_rows_are_loaded_appears(site: Site) -> None:
    channel, ids = in_thread(make_long_channel)
    with browse_as(create_account("mona"), site) as page:
        open_at(page, site, channel, ids[150])
        page.wait_for_function("() => version")

        def post_meanwhile(route: Route) -> None:
            response, before = route.fetch(), page.evaluate("version")
            post_arrivals(site, channel.pk, 1, author=WILMA)
            # The poll notices it, but reads no rows for a page that ends in the past.
            page.wait_for_function("before => version !== before", arg=before)
            route.fulfill(response=response)

        page.route("**/rows/?after=*", post_meanwhile, times=1)
        page.evaluate(TO_END)
        expect(page.locator(".msg", has_text="arrived")).to_have_count(1)
        assert len(shown_ids(page)) == len(set(shown_ids(page)))


def test_at_the_newest_end_no_link_leads_there(site: Site) -> None:
    channel, ids = in_thread(make_long_channel)
    with browse_as(create_account("mona"), site) as page:
        open_at(page, site, channel, ids[90])
        link = page.get_by_role("link", name="Newest messages")
        expect(link).to_be_visible()
        load_all(page, NEWER, TO_END)
        expect(link).to_be_hidden()


def test_rows_that_could_not_be_loaded_are_requested_by_the_next_scroll(site: Site) -> None:
    channel, ids = in_thread(make_long_channel)
    account = create_account("mona")
    # The browser logs the lost connection, which `browse_as` does not allow.
    with browse() as browser:
        page = browser.new_page()
        sign_in(page, site, account)
        page.route("**/rows/?*", lambda route: route.abort())
        open_at(page, site, channel, ids[90])
        page.evaluate(TO_END)
        expect(page.locator("#toast")).to_contain_text("Chatstore cannot be reached")
        page.unroute("**/rows/?*")
        # At the end nothing scrolls, only the wheel turns.
        page.wait_for_selector("a[data-more='newer']:not([data-requested])")
        page.mouse.move(600, 400)
        page.mouse.wheel(0, 100)
        expect(page.locator(".msg")).to_have_count(100)
        load_all(page, NEWER, TO_END)


def test_at_the_newest_end_arrivals_are_followed(site: Site) -> None:
    channel, ids = in_thread(make_long_channel)
    with browse_as(create_account("mona"), site) as page:
        open_at(page, site, channel, ids[90])
        arrived, button = page.locator(".msg", has_text="arrived"), page.locator("#show-new")
        load_all(page, NEWER, TO_END)
        page.evaluate(TO_END)
        post_arrivals(site, channel.pk, 1, author=WILMA)
        expect(arrived).to_have_count(1)
        expect(arrived.last).to_be_in_viewport()
        assert page.evaluate(IS_AT_END)
        expect(button).to_be_hidden()

        page.evaluate("() => scrollBy(0, -900)")
        edge, top = page.evaluate(IN_VIEW)
        post_arrivals(site, channel.pk, 2, author=WILMA)
        expect(button).to_contain_text("2 new messages")
        assert abs(page.evaluate(TOP, edge) - top) <= 2
        button.click()
        expect(arrived.last).to_be_in_viewport()
        expect(button).to_be_hidden()
        shown = shown_ids(page)
        assert shown == sorted(set(shown))
