"""On a phone the text of a listed message has the width of its row, also where no message can be selected."""

from __future__ import annotations

from playwright.sync_api import Page, expect

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
