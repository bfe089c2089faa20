"""The gaps of a purge stay one line, with their sum, while earlier messages are loaded."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatstore.models import Channel
from chatstore.operations.gateway.timeline import open_timeline
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from tests.conftest import make_user
from tests.moderation.channels import make_channel, purge_now, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

RAIDER = 77


def make_cleared_channel() -> Channel:
    """Delete every second one of 200 messages."""
    channel, ids = make_channel(), recent_ids(200)
    write(channel, ids[::2], author=RAIDER)
    write(channel, ids[1::2])
    purge_now(make_user("mona", group="moderators"), Selection(channel_ids=(channel.pk,), where=Author((RAIDER,))))
    return channel


def test_earlier_gaps_of_a_purge_join_its_line(site: Site) -> None:
    channel = in_thread(make_cleared_channel)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        lines, parts = page.locator(".gap[data-total]"), page.locator(".gap.part")
        expect(lines).to_have_count(1)
        expect(lines).to_contain_text("49 messages deleted")
        expect(lines).to_contain_text("100 in the whole purge")
        lines.get_by_role("button", name="Show gaps").click()
        page.get_by_role("link", name="Earlier messages").click()
        expect(parts).to_have_count(100)
        expect(lines).to_have_count(1)
        expect(lines).to_contain_text("100 messages deleted")
        expect(lines).not_to_contain_text("in the whole purge")
        expect(parts.first).to_be_visible()
        lines.get_by_role("button", name="Hide gaps").click()
        expect(parts.first).to_be_hidden()


def test_the_page_of_a_message_shows_its_gaps_on_request(site: Site) -> None:
    channel = in_thread(make_cleared_channel)
    message_id = in_thread(lambda: open_timeline(channel.pk).messages[-20].message_id)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/{message_id}/")
        lines, parts = page.locator(".gap[data-total]"), page.locator(".gap.part")
        expect(lines).to_have_count(1)
        expect(lines).to_contain_text("100 in the whole purge")
        expect(parts.first).to_be_hidden()
        lines.get_by_role("button", name="Show gaps").click()
        expect(parts.first).to_be_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_purge_of_a_gap_opens_beside_the_timeline_on_a_phone_above_it(site: Site, width: int) -> None:
    channel = in_thread(make_cleared_channel)
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        link, panel = page.locator(".gap[data-total]").get_by_role("link", name="View purge"), page.locator("#panel")
        link.click()
        expect(panel.get_by_role("heading", name="Deleted 100 messages")).to_be_focused()
        box, last = panel.bounding_box(), page.locator("#messages .msg").last
        assert box is not None
        # One pane at a time where there is room for one.
        assert (box["width"] == width) is (width == 390)
        expect(last).to_be_visible()
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()
        expect(link).to_be_focused()
        expect(page).to_have_url(f"{site.url}/channels/{channel.pk}/#end")
