"""The notice that offers to restore a deleted message stays for ten seconds, and as long as it is used."""

from __future__ import annotations

import datetime as dt

from playwright.sync_api import expect

from chatstore.models import Channel
from tests.moderation.channels import make_channel, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

MS = 10_000
MARGIN_MS = 500


def write_messages() -> Channel:
    channel = make_channel(guild="Harbour")
    write(channel, recent_ids(4))
    return channel


def test_the_undo_is_offered_for_ten_seconds_and_while_it_is_used(site: Site) -> None:
    channel = in_thread(write_messages)
    with browse_as(create_account("mona"), site) as page:
        page.clock.install()
        page.goto(f"{site.url}/channels/{channel.pk}/")
        # From here on the page's time stands still unless it is moved.
        page.clock.pause_at(dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1))
        undo = page.locator("#toast").get_by_role("button", name="Undo")
        row = page.locator(".msg").last
        row.hover()
        row.get_by_label("Delete this message").click()
        expect(undo).to_be_visible()
        page.clock.run_for(MS - MARGIN_MS)
        assert undo.is_visible()
        page.clock.run_for(2 * MARGIN_MS)
        assert not undo.is_visible()
        expect(page.locator("#toast")).to_be_hidden()

        row = page.locator(".msg").first
        row.hover()
        row.get_by_label("Delete this message").click()
        undo.hover()
        page.clock.run_for(2 * MS)
        assert undo.is_visible()
        page.mouse.move(5, 5)
        page.clock.run_for(2_000)
        assert not undo.is_visible()
        expect(page.locator("#toast")).to_be_hidden()
