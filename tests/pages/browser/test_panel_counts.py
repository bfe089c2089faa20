"""Numbers that are still counted when the panel shows another user, or is closed, replace nothing."""

from __future__ import annotations

import secrets
from contextlib import suppress

from playwright.sync_api import Error, Page, Route, expect

from chatstore.models import Channel, ChatUser
from tests.moderation.channels import make_channel, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

COUNTING = """hx-get="?count_all=1" hx-trigger="load" hx-swap="outerHTML" hx-select="#panel-facts"
    hx-select-oob="#panel-servers,#panel-channels" """
"""As `_recent.html` has them while messages are counted."""


def make_authors() -> tuple[Channel, str, str]:
    """Return a channel and the names of two authors there, of whom the first has posted on another server too."""
    channel, elsewhere = make_channel(guild="Harbour"), make_channel(guild="Quay")
    names: list[str] = []
    for name in ("zoe", "yuri"):
        author = ChatUser.objects.create(pk=channel.pk ^ secrets.randbits(21), name=f"{name}{channel.pk}")
        write(channel, recent_ids(2, minutes_ago=5), author=author.pk)
        if not names:
            write(elsewhere, recent_ids(2, minutes_ago=5), author=author.pk)
        names.append(author.name)
    return channel, names[0], names[1]


def hold_counts(page: Page) -> list[Route]:
    """Have each panel request its numbers once more, and hold these requests."""
    held: list[Route] = []

    def answer(route: Route) -> None:
        if "count_all" in route.request.url:
            held.append(route)
            return
        response = route.fetch()
        again = f'id="panel-facts" {COUNTING.replace("?", route.request.url + "&")}'
        route.fulfill(response=response, body=response.text().replace('id="panel-facts"', again))

    page.route("**/panel/**", answer)
    return held


def release(page: Page, held: list[Route]) -> None:
    """Answer requests that were held, and leave time to show the answers. The page may have aborted them."""
    for route in held:
        with suppress(Error):
            route.fulfill(response=route.fetch())
    page.wait_for_timeout(300)


def test_numbers_of_a_user_who_is_no_longer_shown_replace_nothing(site: Site) -> None:
    channel, first, second = in_thread(make_authors)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/")
        held, panel = hold_counts(page), page.locator("#panel")
        for name in (first, second):
            with page.expect_request("**count_all**"):
                page.locator("main a.author", has_text=name).first.click()
            expect(panel.locator("h2")).to_contain_text(name)
        expect(panel.locator("#panel-servers")).not_to_contain_text("Quay")
        release(page, held[:1])
        expect(panel.locator("h2")).to_contain_text(second)
        expect(panel.locator("#panel-servers")).not_to_contain_text("Quay")
        # After the panel is closed, no error is logged either.
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()
        release(page, held[1:])
