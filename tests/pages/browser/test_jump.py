"""Keys of the search box: "/" and Ctrl-K lead to it, and Enter opens the first suggestion, also before it is there.

The arrow keys move through the suggestions, and Escape closes them.
"""

from __future__ import annotations

import secrets

from playwright.sync_api import expect

from chatstore.models import Channel
from tests.moderation.channels import make_channel
from tests.pages.serving import Site, browse_as, create_account, in_thread


def make_two_channels() -> tuple[Channel, str]:
    word = f"deck-{secrets.token_hex(5)}"
    first = make_channel(guild="Harbour", name=word)
    make_channel(guild="Harbour", name=f"{word}-2")
    return first, word


def test_enter_opens_the_first_suggestion(site: Site) -> None:
    channel, word = in_thread(make_two_channels)
    with browse_as(create_account("mona"), site) as page:
        for key, waits in (("/", True), ("Control+k", False)):
            page.goto(f"{site.url}/purges/")
            page.keyboard.press(key)
            expect(page.get_by_role("searchbox")).to_be_focused()
            page.keyboard.insert_text(word)
            if waits:
                expect(page.get_by_role("link", name="All results")).to_be_visible()
            page.keyboard.press("Enter")
            expect(page).to_have_url(f"{site.url}/channels/{channel.pk}/#end")
        page.goto(f"{site.url}/find/?q={word}")
        page.get_by_role("searchbox").press("Enter")
        expect(page.get_by_role("heading", name="Results for")).to_be_visible()


def test_the_arrow_keys_move_through_the_suggestions_and_back_to_the_box(site: Site) -> None:
    first, word = in_thread(make_two_channels)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/purges/")
        box, links = page.get_by_role("searchbox"), page.locator(".suggestions").get_by_role("link")
        page.keyboard.press("/")
        page.keyboard.insert_text(word)
        expect(links).to_have_count(3)
        # The first channel, the second one, and all results, where the list ends.
        for at in (0, 1, 2, 2):
            page.keyboard.press("ArrowDown")
            expect(links.nth(at)).to_be_focused()
        for at in (1, 0):
            page.keyboard.press("ArrowUp")
            expect(links.nth(at)).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(box).to_be_focused()
        # Above the box there is nothing.
        page.keyboard.press("ArrowUp")
        expect(box).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site.url}/channels/{first.pk}/#end")


def test_escape_closes_the_suggestions_until_something_is_typed_again(site: Site) -> None:
    first, word = in_thread(make_two_channels)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/purges/")
        box, links = page.get_by_role("searchbox"), page.locator(".suggestions").get_by_role("link")
        for downs in (0, 2):
            page.keyboard.press("Control+k")
            # The text is selected: the same takes its place.
            page.keyboard.insert_text(word)
            expect(links).to_have_count(3)
            for _ in range(downs):
                page.keyboard.press("ArrowDown")
            page.keyboard.press("Escape")
            expect(links).to_have_count(0)
            expect(box).to_be_focused()
            expect(box).to_have_value(word)
        page.keyboard.press("Control+k")
        page.keyboard.insert_text(word)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site.url}/channels/{first.pk}/#end")
