"""Consecutive messages of one author share a heading, also where a loaded page ends between them or new ones arrive."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from chatstore.models import Channel
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, WILMA, make_channel, purge_now, recent_ids, write
from tests.pages.browser.loading import load_rest
from tests.pages.browser.posting import post_arrivals
from tests.pages.serving import Site, browse_as, create_account, in_thread

RAIDER = 77
OLDER, NEWER = 'a[data-more="older"]', 'a[data-more="newer"]'


def make_run() -> tuple[Channel, list[int]]:
    """Create a channel with one run of more messages than three pages have."""
    channel, ids = make_channel(), recent_ids(180)
    write(channel, ids)
    return channel, ids


def make_raided_run(raid: slice) -> Channel:
    """Delete a raid amid a run of 180 messages, or after it."""
    channel, ids = make_channel(), recent_ids(180)
    write(channel, ids[raid], author=RAIDER)
    write(channel, [message_id for message_id in ids if message_id not in ids[raid]])
    purge_now(make_user("mona", group="moderators"), Selection(channel_ids=(channel.pk,), where=Author((RAIDER,))))
    return channel


def headings_of(page: Page) -> Locator:
    return page.locator("#messages .avatar:visible")


def load_all(page: Page, link: str) -> None:
    load_rest(page, link, ask=lambda: page.evaluate("link => document.querySelector(link)?.click()", link))


def test_a_run_across_pages_has_one_heading_a_day(site: Site) -> None:
    channel, ids = in_thread(make_run)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/?around={ids[90]}#m{ids[90]}")
        box = page.locator(f"#m{ids[90]} .select-input")
        box.check()
        load_all(page, OLDER)
        load_all(page, NEWER)
        expect(page.locator(".msg")).to_have_count(180)
        expect(headings_of(page)).to_have_count(page.locator(".day").count())
        expect(box).to_be_checked()


def test_a_run_goes_on_where_the_gaps_of_a_purge_join_a_later_line(site: Site) -> None:
    channel = in_thread(lambda: make_raided_run(slice(5, 175, 2)))
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/")
        load_all(page, OLDER)
        expect(page.locator(".gap[data-total]")).to_have_count(1)
        # One below the line, of what all gaps had.
        expect(headings_of(page)).to_have_count(page.locator(".day").count() + 1)


def test_a_message_that_arrives_has_a_heading_unless_its_author_wrote_the_one_above(site: Site) -> None:
    channel = in_thread(make_channel)
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/")
        arrived, days = page.locator(".msg", has_text="arrived"), page.locator(".day")
        for author, count, runs in ((VICTOR, 1, 1), (VICTOR, 2, 1), (WILMA, 3, 2), (VICTOR, 4, 3)):
            post_arrivals(site, channel.pk, 1, author=author)
            expect(arrived).to_have_count(count)
            # At midnight another day begins.
            expect(headings_of(page)).to_have_count(runs + days.count() - 1)


def test_a_message_that_arrives_below_a_gap_has_a_heading(site: Site) -> None:
    channel = in_thread(make_channel)
    post_arrivals(site, channel.pk, 1, author=VICTOR)
    post_arrivals(site, channel.pk, 1, author=RAIDER)
    raid = Selection(channel_ids=(channel.pk,), where=Author((RAIDER,)))
    in_thread(lambda: purge_now(make_user("mona", group="moderators"), raid))
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/")
        expect(page.locator(".gap[data-total]")).to_have_count(1)
        post_arrivals(site, channel.pk, 1, author=VICTOR)
        expect(page.locator(".msg")).to_have_count(2)
        expect(headings_of(page)).to_have_count(2)
