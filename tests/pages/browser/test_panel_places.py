"""From the pages of raids and reports, the panel of a user deletes their messages in the channel of the page."""

from __future__ import annotations

import re
import secrets
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel, ChatUser
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from tests.chatstore.reports import report
from tests.moderation.channels import make_channel, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

DESKTOP, PHONE = (1280, 900), (390, 844)


def make_author() -> tuple[Channel, ChatUser, int]:
    """Return a channel, an author of four messages there, who has also posted in another one, and their first ID."""
    channel, elsewhere = make_channel(guild="Harbour"), make_channel()
    author = ChatUser.objects.create(pk=channel.pk ^ secrets.randbits(21), name=f"zoe{channel.pk}")
    ids = recent_ids(4, minutes_ago=5)
    write(channel, ids, author=author.pk)
    write(channel, recent_ids(3, minutes_ago=4))
    write(elsewhere, recent_ids(2), author=author.pk)
    return channel, author, ids[0]


def preview_of(page: Page) -> Selection:
    """Choose everything in the channel of the page; return what the preview selects."""
    panel = page.locator("#panel")
    panel.get_by_role("form", name=re.compile("^Here")).get_by_role("button", name="All", exact=True).click()
    expect(page.get_by_role("button", name="Delete 4 messages")).to_be_visible()
    purge_id = int(page.url.rstrip("/").rsplit("/", 1)[1])
    return Selection.from_json(in_thread(lambda: Purge.objects.get(pk=purge_id).selection))


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_on_the_page_of_a_raid(site: Site, size: tuple[int, int]) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel, author, _ = in_thread(make_author)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.goto(f"{site.url}/raids/{channel.pk}/")
        if page.locator(".other-accounts:not([open])").count():
            page.locator(".other-accounts > summary").click()
        page.locator(f'a[data-panel][href="/users/{author.pk}/"]').click()
        selection = preview_of(page)
    assert (selection.channel_ids, selection.where) == ((channel.pk,), Author((author.pk,)))


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_on_the_page_of_a_report(site: Site, size: tuple[int, int]) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel, author, first_id = in_thread(make_author)
        case = in_thread(partial(report, channel, first_id, author=author.pk))
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.goto(f"{site.url}/reports/{case.pk}/")
        link = page.get_by_role("link", name="View user")
        link.click()
        expect(page.locator("#panel h2")).to_be_visible()
        # Keys of the reports go on afterwards.
        page.keyboard.press("Escape")
        expect(page.locator("#panel")).to_be_hidden()
        expect(link).to_be_focused()
        link.click()
        selection = preview_of(page)
    assert (selection.channel_ids, selection.where) == ((channel.pk,), Author((author.pk,)))
