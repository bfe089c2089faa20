"""The head of a timeline: on phones its line opens the channels and the actions; each name has a button that copies."""

from __future__ import annotations

import pytest
from playwright.sync_api import FloatRect, expect

from chatstore.models import Channel
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.serving import Site, browse, browse_as, create_account, in_thread, sign_in


def fill_channel() -> Channel:
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(40))
    return channel


def test_on_a_phone_the_channels_and_the_actions_are_reached_from_a_scrolled_timeline(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        head = page.locator(".channel-top .page-head")
        drawer = page.get_by_role("navigation", name="Servers and channels")
        actions = page.locator("#channel-actions")
        for name, opened in (("Channels", drawer), ("Search and actions", actions)):
            button = head.get_by_role("button", name=name, exact=True)
            expect(button).to_be_in_viewport(ratio=1)
            box = button.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 24
            expect(opened).to_be_hidden()
            button.press("Enter")
            expect(opened).to_be_in_viewport()
            page.keyboard.press("Escape")
            expect(opened).to_be_hidden()
        assert page.evaluate("scrollY") > 400
        head.get_by_role("button", name="Search and actions", exact=True).click()
        for name in ("Raid mode", "Delete messages …"):
            expect(actions.get_by_role("link", name=name)).to_be_in_viewport(ratio=1)
        actions.get_by_role("searchbox").fill(channel.name)
        actions.get_by_role("button", name="Search", exact=True).click()
        expect(page).to_have_url(f"{site.url}/find/?q={channel.name}")


@pytest.mark.parametrize("width", [360, 390])
def test_on_a_phone_the_actions_are_a_list_of_rows(site: Site, width: int) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        page.get_by_role("button", name="Search and actions", exact=True).click()
        actions = page.locator("#channel-actions")
        targets = actions.locator("a:visible, button:visible, input[type=search], #at").all()
        boxes = [box for target in targets if (box := target.bounding_box())]
        assert len(boxes) == len(targets) >= 9
        assert min(box["height"] for box in boxes) >= 40
        rows: dict[float, list[FloatRect]] = {}
        for box in boxes:
            rows.setdefault(box["y"] + box["height"] / 2, []).append(box)
        edges = {(min(box["x"] for box in row), max(box["x"] + box["width"] for box in row)) for row in rows.values()}
        assert edges == {(14, width - 14)}
        assert len(rows) == 6
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_actions_are_in_view_on_a_wide_screen(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        expect(page.locator("#channel-actions").get_by_role("link", name="Raid mode")).to_be_in_viewport(ratio=1)
        for name in ("Channels", "Search and actions"):
            expect(page.locator(".channel-top").get_by_role("button", name=name, exact=True)).to_be_hidden()


def test_each_name_is_followed_by_the_button_that_copies_its_id(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        for line, copied in ((".crumbs", channel.guild_id), (".channel-title", channel.pk)):
            buttons = page.locator(f".channel-top {line} [data-copy-id]")
            expect(buttons).to_have_count(1)
            expect(buttons).to_have_attribute("data-copy-id", str(copied))


@pytest.mark.parametrize("width", [390, 1280])
def test_why_a_date_was_refused_stays_in_view_at_the_newest_messages(site: Site, width: int) -> None:
    # The browser logs the status of a refusal.
    with browse() as browser:
        page, channel = browser.new_page(viewport={"width": width, "height": 800}), in_thread(fill_channel)
        sign_in(page, site, in_thread(lambda: create_account("mona")))
        page.goto(f"{site.url}/channels/{channel.pk}/?at=2999-01-01")
        refusal, last = page.locator("#at-refused"), page.locator("#messages a.author").last
        last.scroll_into_view_if_needed()
        expect(last).to_be_in_viewport()
        expect(refusal).to_be_in_viewport(ratio=1)
        expect(refusal).to_contain_text("is in the future")
        above, below = page.locator(".channel-top .page-head").bounding_box(), refusal.bounding_box()
        assert above is not None
        assert below is not None
        assert below["y"] >= above["y"] + above["height"] - 1


def test_the_actions_share_a_line_beside_an_open_panel(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(fill_channel)
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        page.locator("#messages a.author").last.click()
        expect(page.locator("#panel")).to_be_visible()
        actions = page.locator("#channel-actions :is(a, button):visible").all()
        boxes = [box for action in actions if (box := action.bounding_box())]
        assert len(boxes) >= 6
        assert len({round(box["y"] + box["height"] / 2) // 8 for box in boxes}) == 1, boxes
