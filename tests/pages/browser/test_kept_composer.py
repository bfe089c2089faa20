"""What is filled in in the composer is still there after a reload and after going back from the preview."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser
from tests.moderation.channels import make_channel, now_ms, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

TYPED = re.compile(r"\?typed=1&")


@dataclass(frozen=True, slots=True)
class Spam:
    """A channel in which the author posted the text four times."""

    channel: Channel
    author: ChatUser


def write_spam() -> Spam:
    channel = make_channel()
    author = ChatUser.objects.create(pk=make_snowflake(now_ms()), name=f"vic-{secrets.token_hex(4)}")
    write(channel, old_ids(4), author=author.pk, content="free coins & more")
    return Spam(channel, author)


@pytest.fixture
def spam(site: Site) -> Iterator[tuple[Page, Spam]]:
    account = create_account("mona")
    with browse_as(account, site) as page:
        yield page, in_thread(write_spam)


def words_of(page: Page) -> Locator:
    return page.get_by_label("Containing words", exact=True).first


def authors_of(page: Page) -> Locator:
    field = page.get_by_role("combobox", name="Written by", exact=True).first
    return field.locator("xpath=ancestor::*[@data-picker]").locator(".picked li")


def fill_in(page: Page, author: ChatUser) -> None:
    field = page.get_by_role("combobox", name="Written by", exact=True).first
    field.press_sequentially(author.name)
    page.get_by_role("option").first.click()
    page.get_by_label("From", exact=True).first.fill("11 March 2020")
    page.get_by_text("More conditions").click()
    page.get_by_label("a link", exact=True).first.check()
    words_of(page).press_sequentially("coins & more")
    page.wait_for_url(re.compile("words=coins"))


def expect_filled_in(page: Page, author: ChatUser) -> None:
    expect(authors_of(page)).to_have_count(1)
    expect(authors_of(page).first).to_contain_text(author.name)
    expect(page.get_by_label("From", exact=True).first).to_have_value("11 March 2020")
    expect(page.get_by_label("a link", exact=True).first).to_be_checked()
    expect(words_of(page)).to_have_value("coins & more")


def test_a_reload_keeps_what_is_filled_in(site: Site, spam: tuple[Page, Spam]) -> None:
    page, found = spam
    page.goto(f"{site.url}/delete/")
    fill_in(page, found.author)
    page.reload()
    expect_filled_in(page, found.author)
    words_of(page).fill("")
    page.wait_for_url(lambda url: "words=" not in url and TYPED.search(url) is not None)
    page.reload()
    expect(words_of(page)).to_have_value("")
    expect(authors_of(page)).to_have_count(1)


def test_going_back_from_the_preview_shows_what_was_filled_in(site: Site, spam: tuple[Page, Spam]) -> None:
    page, found = spam
    page.goto(f"{site.url}/channels/{found.channel.pk}/delete/")
    fill_in(page, found.author)
    page.get_by_role("button", name="Preview", exact=True).click()
    page.wait_for_url("**/purges/**")
    page.go_back()
    expect_filled_in(page, found.author)


def test_a_preview_that_is_edited_keeps_the_changes_and_is_still_replaced(site: Site, spam: tuple[Page, Spam]) -> None:
    page, found = spam
    page.goto(f"{site.url}/channels/{found.channel.pk}/delete/?author={found.author.pk}&words=free")
    page.get_by_role("button", name="Preview", exact=True).click()
    page.locator("a[href*='preview=']").first.click()
    expect(words_of(page)).to_have_value("free")
    words_of(page).fill("coins")
    page.wait_for_url(re.compile("words=coins"))
    page.reload()
    expect(words_of(page)).to_have_value("coins")
    expect(page.get_by_text("The new preview replaces")).to_be_visible()


def test_a_form_too_long_for_an_address_leaves_nothing_older_in_it(site: Site, spam: tuple[Page, Spam]) -> None:
    page, found = spam
    page.goto(f"{site.url}/channels/{found.channel.pk}/delete/")
    words_of(page).fill("coins")
    page.wait_for_url(re.compile("words=coins"))
    page.get_by_text("More conditions").click()
    page.get_by_label("Nearly the same text as", exact=True).first.fill("free coins " * 300)
    expect(page).to_have_url(re.compile("/delete/$"))
