"""Buttons that copy an ID: the clipboard has exactly the ID, and the notice is announced."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from chatstore.models import Channel
from moderation.models import Purge
from tests.conftest import make_user
from tests.moderation.channels import choose, make_channel, preview, recent_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

pytestmark = pytest.mark.slow


def make_preview() -> tuple[Channel, int, list[int], Purge]:
    """Return a channel with messages of an author whose ID is as long as those of real ones, and a purge of them."""
    channel, ids = make_channel(guild="Harbour"), recent_ids(3)
    author = channel.pk + 5
    write(channel, ids, author=author)
    mona = make_user("mona", group="moderators")
    return channel, author, ids, preview(mona, choose(channel.pk, author_ids=[author]))


def check_copies(page: Page, button: Locator, number: int) -> None:
    """Click the button; check the clipboard, and that the notice is in view, above the rest, and in a live region."""
    page.evaluate("() => navigator.clipboard.writeText('nothing')")
    button.click()
    notice = page.get_by_role("status").filter(has_text="Copied")
    expect(notice).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == str(number)
    assert page.evaluate("""() => {
      const box = document.getElementById("toast").getBoundingClientRect();
      const seen = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      return box.left >= 0 && box.right <= innerWidth && seen.closest("#toast") !== null;
    }""")


@pytest.mark.parametrize("width", [1280, 390])
def test_an_id_is_copied_exactly(site: Site, width: int) -> None:
    channel, author, ids, purge = in_thread(make_preview)
    with browse_as(create_account("mona"), site) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        assert channel.guild_id is not None
        check_copies(page, page.get_by_role("button", name="Copy server ID"), channel.guild_id)
        page.reload()
        check_copies(page, page.get_by_role("button", name="Copy channel ID"), channel.pk)
        page.reload()
        page.locator(".msg a.author").first.click()
        check_copies(page, page.locator("#panel").get_by_role("button", name="Copy ID"), author)
        for path, number in (
            (f"/users/{author}/", author),
            (f"/purges/{purge.pk}/", purge.pk),
            (f"/channels/{channel.pk}/{ids[1]}/", ids[1]),
        ):
            page.goto(f"{site.url}{path}")
            check_copies(page, page.get_by_role("main").get_by_role("button", name="Copy ID"), number)
