"""Selecting messages by mouse and keys, deleting one from its row, and messages that arrive meanwhile."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Position, expect

from tests.pages.browser.posting import post_arrivals
from tests.pages.exports import write_sample_export
from tests.pages.serving import Site, browse_as, create_account

pytestmark = pytest.mark.slow

BESIDE: Position = {"x": 740, "y": 12}
"""A point in a row without a link or a tool."""

RESTS = """() => {
  const isSame = window.lastScrollY === scrollY;
  window.lastScrollY = scrollY;
  return isSame && scrollY + innerHeight < document.documentElement.scrollHeight - 300;
}"""
"""Until a scroll has ended, some way from the newest message."""


@pytest.fixture
def channel(site: Site, tmp_path: Path) -> Iterator[tuple[Page, int, int]]:
    """Return a moderator's browser on a channel's newest messages, the channel and an author."""
    sample = write_sample_export(tmp_path, until=dt.datetime.now(dt.UTC), spam=5, days=60)
    site.manage("import_discord", str(sample.path))
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{sample.channel_id}/")
        yield page, sample.channel_id, sample.victor


def test_messages_are_selected_by_clicks_and_keys(channel: tuple[Page, int, int]) -> None:
    page = channel[0]
    rows, selected = page.locator(".msg"), page.locator(".msg:has(.select-input:checked)")
    rows.nth(44).click(position=BESIDE)
    expect(selected).to_have_count(1)
    rows.nth(47).click(position=BESIDE, modifiers=["Shift"])
    expect(selected).to_have_count(4)
    rows.nth(47).click(position=BESIDE)
    expect(selected).to_have_count(3)
    page.keyboard.press("Escape")
    expect(selected).to_have_count(0)

    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    from_box, to_box = rows.nth(47).bounding_box(), rows.nth(49).bounding_box()
    assert from_box
    assert to_box
    page.mouse.move(to_box["x"] + to_box["width"] - 4, to_box["y"] + to_box["height"] - 3)
    page.mouse.down()
    page.mouse.move(to_box["x"] + to_box["width"] - 4, from_box["y"] + 8, steps=12)
    page.mouse.up()
    expect(selected).to_have_count(3)
    page.keyboard.press("Control+a")
    expect(selected).to_have_count(50)
    page.keyboard.press("Escape")

    row = rows.nth(49)
    row.hover()
    author = row.get_attribute("data-author")
    row.get_by_label("Select all messages by this author here").click()
    expect(selected).to_have_count(page.locator(f'.msg[data-author="{author}"]').count())
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Select all loaded messages")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Delete")
    expect(page.get_by_role("heading", name=re.compile("Delete"))).to_be_visible()
    page.go_back()
    rows.nth(49).locator(".select-input").focus()
    page.keyboard.press("k")
    expect(rows.nth(48).locator(".select-input")).to_be_focused()
    page.keyboard.press("u")
    expect(page.locator("#panel h2")).to_be_visible()
    page.keyboard.press("Escape")
    # Nothing is selected: the focused message is deleted.
    page.keyboard.press("Escape")
    rows.nth(47).locator(".select-input").focus()
    page.keyboard.press("Delete")
    expect(rows.nth(47)).to_have_class(re.compile("deleted"))
    expect(rows.nth(48).locator(".select-input")).to_be_focused()
    expect(page.locator("#toast").get_by_role("button", name="Undo")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(rows.nth(47)).not_to_have_class(re.compile("deleted"))


def test_one_message_is_deleted_and_restored_while_others_arrive(channel: tuple[Page, int, int], site: Site) -> None:
    page, channel_id, author = channel
    row = page.locator(".msg").nth(48)
    text = row.locator(".text").inner_text()
    row.hover()
    row.get_by_label("Delete this message").click()
    expect(row).to_have_class(re.compile("deleted"))
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#toast")).to_have_text("Message restored")
    expect(row).not_to_have_class(re.compile("deleted"))

    post_arrivals(site, channel_id, 2, author=author)
    expect(page.locator(".msg", has_text="arrived")).to_have_count(2)
    assert page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2")
    page.mouse.wheel(0, -600)
    page.wait_for_function(RESTS, polling=200)
    place = page.evaluate("scrollY")
    post_arrivals(site, channel_id, 3, author=author)
    expect(page.get_by_role("button", name="3 new messages")).to_be_visible()
    assert abs(page.evaluate("scrollY") - place) <= 2
    page.get_by_role("button", name="3 new messages").click()
    assert page.evaluate("scrollY") > place
    expect(page.locator("#show-new")).to_be_hidden()
    expect(page.locator(".msg", has_text="arrived")).to_have_count(5)
    page.reload()
    expect(page.locator(".msg", has_text="arrived")).to_have_count(5)
    expect(page.locator(".text", has_text=text.split("\n")[0]).first).to_be_visible()
