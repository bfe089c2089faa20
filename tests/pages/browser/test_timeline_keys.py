"""Moving through messages by keys: the row in focus is clear of the channel's head, which stays above the messages."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from chatstore.models import Channel
from tests.moderation.channels import WILMA, make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

MOVES = 25

CLEARANCE = """() => {
  const heads = [...document.querySelectorAll(".channel-top, .channel-top .page-head")];
  const sticky = heads.filter((head) => getComputedStyle(head).position === "sticky");
  const covered = Math.max(0, ...sticky.map((head) => head.getBoundingClientRect().bottom));
  return document.activeElement.closest(".msg").getBoundingClientRect().top - covered;
}"""


def fill_channel() -> Channel:
    channel, ids = make_channel(guild="Harbour"), old_ids(40)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    return channel


def move_up(page: Page) -> list[float]:
    """Move up from the last message; return how far below the head each row is."""
    page.locator("#messages .select-input").last.focus()
    found = []
    for _ in range(MOVES):
        page.keyboard.press("k")
        found.append(page.evaluate(CLEARANCE))
    return found


def test_moving_up_leaves_no_row_below_the_head_of_the_channel(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        channel = in_thread(fill_channel)
        for width in (1440, 1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            # The address of the page that is open would only be scrolled to.
            page.goto("about:blank")
            page.goto(f"{site.url}/channels/{channel.pk}/#end")
            assert min(move_up(page)) > -1, width
            if width < 1080:
                continue
            # Beside the panel, the buttons of the head take more lines.
            page.locator("#messages a.author").last.click()
            expect(page.locator("#panel h2")).to_be_focused()
            assert min(move_up(page)) > -1, f"{width} beside the panel"


def test_on_a_phone_a_scrolled_timeline_names_its_channel_and_server(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        page.locator("#messages .select-input").last.check()
        expect(page.locator(".select-bar")).to_be_in_viewport()
        assert page.evaluate("scrollY") > 400
        expect(page.locator(".channel-top h1")).to_be_in_viewport(ratio=1)
        expect(page.locator(".channel-top .crumbs")).to_contain_text("Harbour")
        expect(page.locator(".channel-top .crumbs bdi").first).to_be_in_viewport(ratio=1)
