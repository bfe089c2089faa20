"""What another moderator deletes and restores disappears from a timeline that is open, and comes back, in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel
from tests.moderation.channels import WILMA, make_channel, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread, sign_in

pytestmark = pytest.mark.slow

RAIDER = 77

UNDO_MS = 10_500
"""Longer than an undo is offered."""

LOADED = "() => [...document.querySelectorAll('.msg')].map((row) => row.id.slice(1))"
FIRST_THAT_STAYS = """() => {
  const top = Math.max(document.querySelector(".channel-top").getBoundingClientRect().bottom, 0);
  const stays = [...document.querySelectorAll(".msg")].filter((row) => row.dataset.author !== "77");
  return stays.find((row) => row.getBoundingClientRect().bottom > top).id;
}"""
RAID = f'.msg[data-author="{RAIDER}"]'
TOP = "id => document.querySelector(`#${id} .text`).getBoundingClientRect().top"
CUT_BY_HEAD = """id => {
  const head = document.querySelector(".channel-top").getBoundingClientRect().bottom;
  window.scrollBy(0, document.getElementById(id).getBoundingClientRect().top - head + 5);
}"""
"""Scroll until the head covers the first pixels of the row."""


@contextmanager
def two_moderators(site: Site) -> Iterator[tuple[Page, Page]]:
    """Yield a page of each."""
    first, second = create_account("mona"), create_account("mona")
    with browse_as(first, site) as watching:
        assert watching.context.browser
        acting = watching.context.browser.new_page()
        sign_in(acting, site, second)
        watching.set_viewport_size({"width": 1280, "height": 600})
        yield watching, acting


def make_raided_channel() -> tuple[Channel, list[int]]:
    """Every fourth of 120 messages is the raider's; those of others are several lines long."""
    channel, ids = make_channel(), recent_ids(120)
    write(channel, ids[::4], author=RAIDER)
    write(channel, [message_id for message_id in ids if message_id not in ids[::4]], content="long " * 80)
    return channel, ids


def make_run() -> tuple[Channel, list[int]]:
    """Create a channel with one message of an author and then 39 of another one."""
    channel, ids = make_channel(), recent_ids(40)
    write(channel, ids[:1], author=WILMA)
    write(channel, ids[1:])
    return channel, ids


def delete_raid(page: Page, site: Site, channel: Channel) -> None:
    page.goto(f"{site.url}/channels/{channel.pk}/delete/?authors={RAIDER}")
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_label("Reason").fill("Raid")
    page.get_by_role("button", name="Delete 30 messages").click()
    expect(page.get_by_role("heading", name="Deleted 30 messages")).to_be_visible()


def restore_raid(page: Page) -> None:
    page.get_by_role("link", name="Restore 30 messages").click()
    page.get_by_label("Reason").fill("Not a raid")
    page.get_by_role("button", name="Restore 30 messages").click()
    expect(page.get_by_role("heading", name="Restored 30 messages")).to_be_visible()


def shown_ids(page: Page) -> list[int]:
    return [int(message_id) for message_id in page.evaluate(LOADED)]


def reach_of(shown: list[int], ids: list[int]) -> list[int]:
    """Return all IDs from the first to the last one that is shown."""
    return [message_id for message_id in ids if shown[0] <= message_id <= shown[-1]]


def test_an_open_timeline_follows_a_purge_and_its_undo(site: Site) -> None:
    channel, ids = in_thread(make_raided_channel)
    with two_moderators(site) as (watching, acting):
        watching.goto(f"{site.url}/channels/{channel.pk}/#end")
        gap = watching.locator(".gap[data-total]")
        raid, selected = watching.locator(RAID), watching.locator(".msg:has(.select-input:checked)")
        expect(raid).to_have_count(12)
        for message_id in ids[99:101]:
            watching.locator(f"#m{message_id} .select-input").check()
        # Of the rows in view the first one that stays keeps its place.
        watching.evaluate("() => scrollTo(0, 500)")
        edge = watching.evaluate(FIRST_THAT_STAYS)
        top = watching.evaluate(TOP, edge)
        watching.evaluate("() => { window.isSamePage = true; }")
        status = watching.get_by_role("status")

        delete_raid(acting, site, channel)
        expect(raid).to_have_count(0)
        expect(gap).to_have_count(1)
        expect(gap).to_contain_text("messages deleted")
        expect(status.filter(has_text=re.compile(r"^\d+ messages deleted$"))).to_be_attached()
        expect(selected).to_have_count(1)
        assert abs(watching.evaluate(TOP, edge) - top) <= 2
        shown = shown_ids(watching)
        assert shown == [i for i in reach_of(shown, ids) if i not in ids[::4]]

        # Without those above it, it may have left the view: then the next one keeps its place.
        edge = watching.evaluate(FIRST_THAT_STAYS)
        top = watching.evaluate(TOP, edge)
        restore_raid(acting)
        expect(gap).to_have_count(0)
        expect(status.filter(has_text=re.compile(r"^\d+ messages restored$"))).to_be_attached()
        expect(selected).to_have_count(1)
        assert abs(watching.evaluate(TOP, edge) - top) <= 2
        shown = shown_ids(watching)
        assert shown == reach_of(shown, ids)
        assert watching.evaluate("() => window.isSamePage")


def test_a_page_in_the_past_follows_within_its_range(site: Site) -> None:
    channel, ids = in_thread(make_raided_channel)
    with two_moderators(site) as (watching, acting):
        watching.goto(f"{site.url}/channels/{channel.pk}/?around={ids[60]}#m{ids[60]}")
        raid = watching.locator(RAID)
        expect(raid.first).to_be_attached()
        delete_raid(acting, site, channel)
        expect(raid).to_have_count(0)
        expect(watching.locator(".gap[data-total]")).to_have_count(1)
        shown = shown_ids(watching)
        assert shown == [i for i in reach_of(shown, ids) if i not in ids[::4]]
        restore_raid(acting)
        expect(watching.locator(".gap[data-total]")).to_have_count(0)
        shown = shown_ids(watching)
        assert shown == reach_of(shown, ids)


def test_the_first_row_in_view_keeps_its_text_in_place_while_it_has_the_heading_of_its_run(site: Site) -> None:
    channel, ids = in_thread(make_run)
    with two_moderators(site) as (watching, acting):
        # High enough for the head to stay in view.
        watching.set_viewport_size({"width": 1280, "height": 800})
        watching.goto(f"{site.url}/channels/{channel.pk}/#end")
        start, first = watching.locator(f"#m{ids[1]}"), watching.locator(f"#m{ids[2]}")
        watching.evaluate(CUT_BY_HEAD, f"m{ids[2]}")
        top = watching.evaluate(TOP, f"m{ids[2]}")
        expect(first.locator(".avatar")).to_be_hidden()

        acting.goto(f"{site.url}/channels/{channel.pk}/#end")
        row = acting.locator(f"#m{ids[1]}")
        row.hover()
        row.get_by_role("button", name="Delete this message").click()
        expect(start).to_have_count(0)
        expect(first.locator(".avatar")).to_be_visible()
        assert abs(watching.evaluate(TOP, f"m{ids[2]}") - top) <= 1

        acting.get_by_role("button", name="Undo").click()
        expect(start).to_have_count(1)
        expect(first.locator(".avatar")).to_be_hidden()
        assert abs(watching.evaluate(TOP, f"m{ids[2]}") - top) <= 1


def test_a_deleted_row_gives_way_to_the_line_of_its_purge_once_no_undo_is_offered(site: Site) -> None:
    channel, ids = in_thread(make_run)
    with browse_as(create_account("mona"), site) as page:
        page.clock.install()
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        row, line = page.locator(f"#m{ids[1]}"), page.locator(".gap[data-total]")
        row.hover()
        row.get_by_role("button", name="Delete this message").click()
        expect(line).to_have_count(1)
        page.clock.run_for(UNDO_MS)
        expect(page.locator("#toast")).to_be_hidden()
        expect(row).to_have_count(0)
        expect(line).to_have_count(1)
