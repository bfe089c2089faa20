"""On a phone the text of a listed message has the width of its row, and its tools cover no other message."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from chatstore.domain.buckets import bucket_of
from chatstore.models import BucketDeletes
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.summaries import count_uncovered
from moderation.models import Purge
from tests.conftest import make_user
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, write
from tests.pages.serving import Site, browse_as, create_account, in_thread


def make_purge() -> Purge:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(6), content="A message that is long enough for a line of a phone: ")
    return purge_now(make_user("mona", group="moderators"), everything(channel))


def share_of_text(page: Page) -> float:
    """Return the share of a row's width that the narrowest text has."""
    rows = page.locator(".samples .entry")
    expect(rows.first).to_be_visible()
    shares: list[float] = rows.evaluate_all(
        "rows => rows.map(row => row.querySelector('.text').clientWidth / row.clientWidth)"
    )
    return min(shares)


def test_the_text_of_a_row_is_wide_on_a_phone(site: Site) -> None:
    purge = in_thread(make_purge)
    with browse_as(create_account("mona"), site) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        for path in ("messages/", "undo/"):
            page.goto(f"{site.url}/purges/{purge.pk}/{path}")
            assert share_of_text(page) > 0.6, path


def test_a_number_of_deletes_stays_beside_its_word_on_a_phone(site: Site) -> None:
    channel = in_thread(lambda: make_channel(guild="Harbour Watch of the north", name="a-channel-with-a-long-name"))
    in_thread(lambda: note_deletes(channel.pk, bucket_of(old_ids(1)[0]), 10**12))
    in_thread(lambda: count_uncovered(None))
    with browse_as(create_account("otto"), site) as page:
        page.set_viewport_size({"width": 360, "height": 844})
        page.goto(f"{site.url}/health/")
        line = page.locator("li", has=page.locator(f"a[href='/channels/{channel.pk}/health/']"))
        number = line.locator("b", has_text="1,000,000,000,000 deletes")
        assert number.evaluate("one => one.getClientRects().length === 1 && one.offsetHeight < 30")
    in_thread(lambda: BucketDeletes.objects.filter(channel_id=channel.pk).delete())


TOOLS = """
tools => {
  const box = tools.getBoundingClientRect();
  const row = tools.closest(".msg").getBoundingClientRect();
  const text = tools.closest(".msg").querySelector(".text").getBoundingClientRect();
  return {isInRow: box.top > row.top - 1 && box.bottom < row.bottom + 1, isBelowText: box.top > text.bottom - 1};
}
"""


def test_the_tools_of_a_row_cover_no_other_message_on_a_phone(site: Site) -> None:
    channel = in_thread(lambda: make_channel(guild="Harbour"))
    # Of one author in a row, so that all but the first have no line with a name.
    in_thread(lambda: write(channel, old_ids(6), content="Short "))
    with browse_as(create_account("mona"), site) as page:
        page.goto(f"{site.url}/channels/{channel.pk}/")
        rows = page.locator("#messages .msg")
        for width in (390, 360):
            page.set_viewport_size({"width": width, "height": 844})
            for row in (rows.first, rows.last):
                tools = row.locator(".tools")
                tools.locator("a, button").first.focus()
                expect(tools).to_have_css("opacity", "1")
                assert tools.evaluate(TOOLS)["isInRow"]
            rows.last.locator(".select-input").check()
            assert rows.last.locator(".tools").evaluate(TOOLS) == {"isInRow": True, "isBelowText": True}
            rows.last.locator(".select-input").uncheck()
