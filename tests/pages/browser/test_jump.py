"""Keys of the search box: "/" and Ctrl-K lead to it, and Enter opens the first suggestion, also before it is there."""

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
