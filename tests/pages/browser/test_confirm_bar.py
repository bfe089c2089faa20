"""What confirms a preview stays in view while the preview scrolls, on wide and narrow windows; its link is copied."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from tests.moderation.channels import VICTOR, make_channel, old_ids, preview, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

COUNT = 240
SIZES = ((1280, 900), (390, 844))


def draft(username: str) -> Purge:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(COUNT))
    selection = Selection(channel_ids=(channel.pk,), where=Author((VICTOR,)))
    return preview(User.objects.get(username=username), selection)


def test_the_confirmation_is_in_view_wherever_one_scrolls_and_the_link_is_copied(site: Site) -> None:
    account = create_account("mona")
    purge = in_thread(lambda: draft(account[0]))
    with browse_as(account, site) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{site.url}/purges/{purge.pk}/")
            most = page.evaluate("document.documentElement.scrollHeight - innerHeight")
            assert most > height, "the preview does not scroll"
            for part in (0, 0.3, 0.6, 1):
                page.evaluate("top => scrollTo(0, top)", part * most)
                expect_confirmation(page)
        page.get_by_role("region", name="Confirm").get_by_role("button", name="Spam", exact=True).click()
        expect(page.get_by_label("Reason")).to_have_value("Spam")

        page.get_by_role("button", name="Copy link").click()
        expect(page.locator("#toast")).to_have_text("Link copied")
        assert page.evaluate("navigator.clipboard.readText()") == f"{site.url}/purges/{purge.pk}/"


def expect_confirmation(page: Page) -> None:
    """Expect the cost in words, the reason with its templates, and the button with the count; nothing covers it."""
    bar = page.get_by_role("region", name="Confirm")
    button = bar.get_by_role("button", name=f"Delete {COUNT} messages")
    for part in (
        bar.get_by_text("You can restore them for 30 days."),
        bar.get_by_label("Reason"),
        bar.get_by_role("button", name="Raid clean-up"),
        button,
    ):
        expect(part).to_be_in_viewport(ratio=1)
    button.click(trial=True)


def test_the_reason_is_the_third_key_away_on_a_preview_of_any_length(site: Site) -> None:
    account = create_account("mona")
    purge = in_thread(lambda: draft(account[0]))
    with browse_as(account, site) as page:
        page.goto(f"{site.url}/purges/{purge.pk}/")
        for _ in range(2):
            page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the confirmation")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport(ratio=1)
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.get_by_label("Reason")).to_be_focused()
        expect_confirmation(page)
