"""Reading, selecting, purging and restoring in a browser that runs no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel
from chatstore.operations.gateway.timeline import newest_messages
from tests.moderation.channels import VICTOR, WILMA, make_channel, old_ids, write
from tests.pages.serving import Site, browse, create_account, in_thread, sign_in
from tests.waiting import LIMIT_SECONDS


@pytest.fixture(scope="module")
def page(site: Site) -> Iterator[Page]:
    account = create_account("mona")
    with browse() as browser:
        context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
        context.set_default_timeout(LIMIT_SECONDS * 1_000)
        page = context.new_page()
        sign_in(page, site, account)
        yield page


@pytest.fixture
def channel(site: Site) -> Channel:
    return in_thread(fill_channel)


def fill_channel() -> Channel:
    """Make a channel with eight messages, the last four by Wilma."""
    channel, ids = make_channel(guild="Harbour"), old_ids(8)
    write(channel, ids[:4], content="cheap coins")
    write(channel, ids[4:], author=WILMA, content="good morning")
    return channel


def confirm(page: Page, count: int) -> None:
    """Confirm the preview that is made; wait until it is deleted. The pages load themselves again meanwhile."""
    page.get_by_label("Reason").fill("Spam")
    page.get_by_role("button", name=f"Delete {count} messages").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Deleted {count} messages")


def test_selected_messages_are_deleted_and_restored(page: Page, site: Site, channel: Channel) -> None:
    page.goto(f"{site.url}/channels/{channel.pk}/")
    expect(page.locator(".msg")).to_have_count(8)
    boxes = page.locator(".msg .select-input")
    for number in (0, 2, 5):
        boxes.nth(number).check()
    page.get_by_role("button", name="Delete selected messages …").click()
    confirm(page, 3)
    purge = page.url
    page.goto(f"{site.url}/channels/{channel.pk}/")
    expect(page.locator(".msg")).to_have_count(5)
    page.goto(f"{purge}undo/")
    page.get_by_label("Reason").fill("Appeal accepted")
    page.get_by_role("button", name="Restore 3 messages").click()
    expect(page.locator(".chip", has_text="restored").first).to_be_visible()
    page.goto(f"{site.url}/channels/{channel.pk}/")
    expect(page.locator(".msg")).to_have_count(8)


def test_what_matches_conditions_is_deleted(page: Page, site: Site, channel: Channel) -> None:
    page.goto(f"{site.url}/channels/{channel.pk}/delete/")
    page.get_by_label("Containing words", exact=True).first.fill("coins")
    page.get_by_role("button", name=re.compile("Preview")).first.click()
    confirm(page, 4)
    page.goto(f"{site.url}/channels/{channel.pk}/")
    expect(page.locator(".msg")).to_have_count(4)
    expect(page.locator("#messages")).not_to_contain_text("cheap coins")


def test_no_button_that_copies_is_shown(page: Page, site: Site, channel: Channel) -> None:
    message_id = in_thread(lambda: newest_messages([channel.pk])[channel.pk].message_id)
    page.goto(f"{site.url}/channels/{channel.pk}/delete/?authors={VICTOR}")
    page.get_by_role("button", name=re.compile("Preview")).first.click()
    purge = page.url
    for url in (purge, f"{site.url}/users/{VICTOR}/", f"{site.url}/channels/{channel.pk}/{message_id}/"):
        page.goto(url)
        expect(page.locator("[data-copy-id]").first).to_be_attached()
        expect(page.locator("button[data-copy-id]:visible, button[data-copy-link]:visible")).to_have_count(0)
