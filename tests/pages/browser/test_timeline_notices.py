"""What an open timeline says and offers: undos, the limit of a selection, people, new messages in an empty channel."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chatstore.models import Channel, ChatUser
from tests.moderation.channels import make_channel, recent_ids, write
from tests.pages.browser.posting import post_arrivals
from tests.pages.exports import write_sample_export
from tests.pages.serving import Site, browse_as, create_account, in_thread

pytestmark = pytest.mark.slow

FILL = """() => {
  const first = document.querySelector(".msg");
  for (let number = 0; number < 1000; number += 1) {
    const row = first.cloneNode(true);
    row.id = `m${number + 1}`;
    first.before(row);
  }
  scrollTo(0, document.documentElement.scrollHeight);
  window.isSamePage = true;
}"""
"""As many rows as a tab has that was open for days."""


@pytest.fixture
def page(site: Site) -> Iterator[Page]:
    with browse_as(create_account("mona"), site) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield page


def make_mention() -> tuple[Channel, int]:
    channel, user_id = make_channel(), secrets.randbits(40)
    ChatUser.objects.create(pk=user_id, name="wendy", display_name="Wendy")
    write(channel, recent_ids(60), content=f"<@{user_id}>")
    return channel, user_id


def test_an_offered_undo_stays_beside_what_is_said_meanwhile(page: Page, site: Site, tmp_path: Path) -> None:
    sample = write_sample_export(tmp_path, until=dt.datetime.now(dt.UTC), spam=5, days=60)
    site.manage("import_discord", str(sample.path))
    page.goto(f"{site.url}/channels/{sample.channel_id}/")
    rows, toast = page.locator(".msg"), page.locator("#toast")
    for number in (48, 46):
        rows.nth(number).get_by_label("Delete this message").dispatch_event("click")
        expect(rows.nth(number)).to_have_class(re.compile("deleted"))
        # Used, an offer outlasts its ten seconds, however slow the machine is.
        toast.get_by_role("button", name="Undo").first.hover()
    expect(toast.locator("form")).to_have_count(2)
    rows.nth(44).get_by_label("Copy the link to this message").dispatch_event("click")
    expect(toast).to_contain_text("Link copied")
    # The newest offer is the first one.
    toast.get_by_role("button", name="Undo").last.click()
    expect(toast).to_contain_text("Message restored")
    expect(rows.nth(48)).not_to_have_class(re.compile("deleted"))
    expect(rows.nth(46)).to_have_class(re.compile("deleted"))
    toast.get_by_role("button", name="Undo").click()
    expect(rows.nth(46)).not_to_have_class(re.compile("deleted"))
    expect(toast).to_have_text("Message restored")


def test_more_messages_than_a_purge_may_name_cannot_be_sent(page: Page, site: Site) -> None:
    channel = in_thread(make_mention)[0]
    page.goto(f"{site.url}/channels/{channel.pk}/")
    expect(page.locator("#selection")).to_have_attribute("data-max", "1000")
    page.evaluate("() => { document.getElementById('selection').dataset.max = 49; }")
    page.locator(".msg .select-input").last.focus()
    page.keyboard.press("Control+a")
    expect(page.locator("#selection [role=status]")).to_have_text("50 messages selected. At most 1,000 at a time.")
    delete = page.get_by_role("button", name="Delete 50 messages …")
    expect(delete).to_be_disabled()
    page.keyboard.press("Delete")
    page.locator(".msg .select-input").first.uncheck()
    expect(page.get_by_role("button", name="Delete 49 messages …")).to_be_enabled()
    expect(page.locator("#selection [role=status]")).to_have_text("49 messages selected")


def test_a_mention_opens_the_person_beside_the_timeline(page: Page, site: Site) -> None:
    channel, user_id = in_thread(make_mention)
    page.goto(f"{site.url}/channels/{channel.pk}/")
    mention = page.locator(".msg a.mention").last
    with page.context.expect_page() as opened:
        mention.click(modifiers=["Control"])
    expect(opened.value).to_have_url(f"{site.url}/users/{user_id}/")
    opened.value.close()
    mention.click()
    expect(page.locator("#panel h2")).to_contain_text("Wendy")


def test_a_full_timeline_is_opened_again_but_not_while_a_person_is_in_hand(page: Page, site: Site) -> None:
    channel = in_thread(make_mention)[0]
    page.goto(f"{site.url}/channels/{channel.pk}/")
    page.locator(".msg a.mention").last.click()
    expect(page.locator("#panel h2")).to_be_visible()
    page.evaluate(FILL)
    # The second of two polls begins after the first one has left the page open.
    for _ in range(2):
        page.wait_for_event("requestfinished", lambda request: "/new/" in request.url)
    assert page.evaluate("() => window.isSamePage")
    page.locator("#panel [data-close]").click()
    page.wait_for_function("() => !window.isSamePage")
    expect(page.locator(".msg")).to_have_count(50)


def test_new_messages_replace_the_note_of_an_empty_channel_and_are_announced(page: Page, site: Site) -> None:
    channel = in_thread(make_channel)
    page.goto(f"{site.url}/channels/{channel.pk}/")
    expect(page.locator("#messages")).to_contain_text("No messages in")
    post_arrivals(site, channel.pk, 2)
    # First, as it is withdrawn after some seconds.
    expect(page.locator("#new-status")).to_have_text(re.compile(r"^[12] new messages?$"))
    expect(page.locator(".msg")).to_have_count(2)
    expect(page.locator("#messages")).not_to_contain_text("No messages in")
