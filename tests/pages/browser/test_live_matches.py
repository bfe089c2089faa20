"""The composer shows the first matches while the form is filled in."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatstore.models import Channel
from tests.moderation.channels import WILMA, make_channel, old_ids, recent_ids, write
from tests.pages.browser.asking_again import expect_text
from tests.pages.serving import Site, browse_as, create_account, in_thread


def fill_channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(6), content="cheap coins")
    write(channel, recent_ids(2), author=WILMA, content="good morning")
    return channel


def test_matches_follow_what_is_typed_and_the_newest_request_wins(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/delete/")
        matches = page.get_by_role("region", name="First matches")
        expect(matches).to_contain_text("The newest matches appear here")
        words = page.get_by_label("Containing words", exact=True).first
        words.press_sequentially("coins", delay=20)

        def type_again(text: str) -> None:
            words.fill("")
            words.press_sequentially(text, delay=20)

        expect_text(matches, "6 matches", again=lambda: type_again("coins"))
        expect(matches.get_by_role("listitem")).to_have_count(5)
        words.fill("good morning")
        expect_text(matches, "2 matches", again=lambda: type_again("good morning"))
        expect(matches.get_by_role("listitem")).to_have_count(2)
        words.fill("")
        expect(matches).to_contain_text("The newest matches appear here")


def test_a_form_that_is_filled_in_already_shows_its_matches(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/delete/?words=morning")
        expect_text(page.get_by_role("region", name="First matches"), "2 matches", again=page.reload)


def test_a_match_opens_beside_the_form_which_stays_filled_in(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/delete/")
        words = page.get_by_label("Containing words", exact=True).first
        words.press_sequentially("morning", delay=20)
        link = page.get_by_role("region", name="First matches").get_by_role("link", name="(opens in a new tab)").first
        with page.context.expect_page() as opened:
            link.click()
        expect(opened.value.locator(".msg", has_text="good morning").first).to_be_visible()
        expect(words).to_have_value("morning")


def test_a_click_on_a_bar_zooms_without_a_new_page(site: Site) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/delete/?words=coins")
        page.get_by_role("button", name="Preview", exact=True).click()
        times = page.get_by_role("region", name="When they were posted")
        expect(times.get_by_role("link", name="All", exact=True)).to_have_attribute("aria-current", "true")
        page.evaluate("window.isSamePage = true")
        times.locator("svg a").first.click()
        expect(times.get_by_role("link", name="All", exact=True)).not_to_have_attribute("aria-current", "true")
        times.get_by_role("link", name="Hour", exact=True).click()
        expect(times.get_by_role("link", name="Hour", exact=True)).to_have_attribute("aria-current", "true")
        assert page.evaluate("window.isSamePage") is True
        assert "zoom=hour" in page.url


COVERED = """() => {
  const box = document.activeElement.getBoundingClientRect();
  const bar = document.querySelector(".composer-actions").getBoundingClientRect();
  const isCovered = box.bottom > bar.top + 1 && box.left < bar.right;
  return isCovered ? document.activeElement.outerHTML.slice(0, 90) : "";
}"""


@pytest.mark.parametrize("width", [390, 1100, 1280])
def test_the_number_and_the_button_stay_in_view_and_cover_no_field_in_focus(site: Site, width: int) -> None:
    account = create_account("mona")
    with browse_as(account, site) as page:
        channel = in_thread(fill_channel)
        page.set_viewport_size({"width": width, "height": 780})
        page.goto(f"{site.url}/channels/{channel.pk}/delete/?words=coins")
        number = page.locator("#bar-count") if width < 1200 else page.locator(".matches .matches-count")
        expect_text(number, "6", again=page.reload)
        page.get_by_label("Written by", exact=True).first.focus()
        expect(page.get_by_role("button", name="Preview", exact=True)).to_be_in_viewport()
        expect(number).to_be_in_viewport()
        covered = []
        while page.evaluate("!document.activeElement.closest('.composer-actions')"):
            covered.append(page.evaluate(COVERED))
            page.keyboard.press("Tab")
        assert len(covered) > 10
        assert [*filter(None, covered)] == []


def test_on_a_phone_the_number_leads_to_the_first_matches(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.set_viewport_size({"width": 390, "height": 780})
        page.goto(f"{site.url}/channels/{channel.pk}/delete/?words=coins")
        expect_text(page.locator("#bar-count"), "6", again=page.reload)
        heading = page.get_by_role("heading", name="First matches")
        expect(heading).not_to_be_in_viewport()
        page.get_by_role("link", name="6 matches").click()
        expect(heading).to_be_in_viewport()
        expect(page.get_by_label("Containing words", exact=True).first).to_have_value("coins")
