"""The icons of a row's tools are drawn where they are visible: under the pointer, with the focus, or if selected."""

from __future__ import annotations

from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.serving import Site, browse_as, create_account

ICONS = 4
COUNT_ICONS = """rows => rows.map((row) => [...row.querySelectorAll(".tools .icon")]
  .filter((icon) => getComputedStyle(icon, "::before").content !== "none").length)"""


def make_url(site: Site) -> str:
    """Return the URL of a channel with three messages."""
    channel = make_channel()
    write(channel, old_ids(3))
    return f"{site.url}/channels/{channel.pk}/"


def test_the_icons_of_one_row_are_drawn_at_a_time(site: Site) -> None:
    account, url = create_account("mona"), make_url(site)
    with browse_as(account, site) as page:
        page.goto(url)
        rows = page.locator(".msg")
        page.mouse.move(0, 0)
        assert rows.evaluate_all(COUNT_ICONS) == [0, 0, 0]
        rows.nth(1).hover()
        assert rows.evaluate_all(COUNT_ICONS) == [0, ICONS, 0]
        page.mouse.move(0, 0)
        rows.nth(2).locator(".tools .icon").last.focus()
        assert rows.evaluate_all(COUNT_ICONS) == [0, 0, ICONS]


def test_the_icons_of_the_selected_row_are_drawn_on_phones(site: Site) -> None:
    account, url = create_account("mona"), make_url(site)
    with browse_as(account, site) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(url)
        box = page.locator(".msg .select-input").first
        box.check()
        box.blur()
        page.mouse.move(0, 0)
        assert page.locator(".msg").evaluate_all(COUNT_ICONS) == [ICONS, 0, 0]
