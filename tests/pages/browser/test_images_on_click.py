"""Images of messages: one is requested when its button is pressed, not before, and only from an allowed host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.store import ledger
from chatstore.store import messages as message_store
from tests.moderation.channels import VICTOR, make_channel, recent_ids
from tests.pages.serving import Site, browse_as, create_account, serve_only_pages

pytestmark = pytest.mark.slow

# Hosts of this file only: icons of servers that other tests make are requested without a click.
ALLOWED, OTHER = "gallery.example", "elsewhere.example"
NAME = 'shore "at" <dawn>.png'
WIDTH, HEIGHT = 320, 200
IMAGE = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"/>'
LOADED = f"image => image.naturalWidth === {WIDTH}"
IS_BELOW_HEAD = """image => {
  const top = image.getBoundingClientRect().top;
  return top >= document.querySelector(".channel-top").getBoundingClientRect().bottom - 1 && top < innerHeight;
}"""
IS_AT_END = "() => scrollY + innerHeight >= document.documentElement.scrollHeight - 2"


def make_gallery() -> Channel:
    """Post two images of a host that the settings allow, and one of another. The second has unknown dimensions."""
    channel, ids = make_channel(), recent_ids(3)
    ledger.ensure_row(channel.pk, bucket_of(ids[0]))
    size = {"width": WIDTH, "height": HEIGHT}
    for message_id, host, known in zip(ids, (ALLOWED, ALLOWED, OTHER), (size, {}, size), strict=True):
        image = {"filename": NAME, "size": 2048, "url": f"https://{host}/{message_id}.png", **known}
        message = Message(channel.pk, message_id, VICTOR, "look", attachments=(json.dumps(image),))
        message_store.insert_messages([message], stamp_us=message_store.posted_stamp)
    return channel


@pytest.fixture(scope="module")
def gallery(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve pages with an allowed host; the worker is the one of the other tests."""
    with serve_only_pages(tmp_path_factory.mktemp("gallery"), MEDIA_HOSTS=ALLOWED) as pages:
        yield pages


@contextmanager
def open_gallery(site: Site) -> Iterator[tuple[Page, list[Request]]]:
    """Open the channel; return the page, and the list of requests for anything outside the site."""
    channel, account = make_gallery(), create_account("mona")
    with browse_as(account, site) as page:
        outside: list[Request] = []
        page.on("request", lambda request: None if request.url.startswith(site.url) else outside.append(request))
        for host in (ALLOWED, OTHER):
            page.route(f"https://{host}/**", lambda route: route.fulfill(body=IMAGE, content_type="image/svg+xml"))
        page.goto(f"{site.url}/channels/{channel.pk}/#end")
        yield page, outside


def check_shown(page: Page, outside: list[Request]) -> None:
    """Check that exactly the first image was loaded, with its name and its dimensions, and without a referrer."""
    image = page.locator(".msg").first.locator("img.media")
    expect(image).to_be_visible()
    page.wait_for_function(LOADED, arg=image.element_handle())
    expect(image).to_have_attribute("alt", NAME)
    expect(image).to_have_attribute("width", str(WIDTH))
    expect(image).to_have_attribute("height", str(HEIGHT))
    expect(page.locator("img.media")).to_have_count(1)
    (request,) = outside
    assert request.url.startswith(f"https://{ALLOWED}/")
    assert "referer" not in request.headers


def test_an_image_is_requested_by_the_click_on_its_button(gallery: Site) -> None:
    with open_gallery(gallery) as (page, outside):
        buttons = page.get_by_role("button", name="Show image")
        expect(buttons).to_have_count(2)
        page.wait_for_load_state("networkidle")
        assert outside == []
        buttons.first.click()
        check_shown(page, outside)
        expect(buttons).to_have_count(1)
        # A click on a row selects it, one on a button of it does not.
        expect(page.locator(".select-input:checked")).to_have_count(0)


def test_an_image_of_another_host_is_a_link(gallery: Site) -> None:
    with open_gallery(gallery) as (page, outside):
        row = page.locator(".msg").last
        link = row.get_by_role("link", name=NAME)
        expect(link).to_have_attribute("rel", "noreferrer noopener nofollow")
        expect(row.get_by_role("button", name="Show image")).to_have_count(0)
        expect(row).to_contain_text("320 × 200")
        assert outside == []


def test_an_image_is_shown_by_keys_and_the_focus_stays_at_its_message(gallery: Site) -> None:
    with open_gallery(gallery) as (page, outside):
        first, second = page.locator(".msg").nth(0), page.locator(".msg").nth(1)
        first.get_by_role("button", name="Show image").focus()
        page.keyboard.press("Enter")
        check_shown(page, outside)
        page.keyboard.press("j")
        expect(second.locator(".select-input")).to_be_focused()


def show_at_end(page: Page, row: Locator) -> Locator:
    """Show the image of a row at the end of the page; return it."""
    page.evaluate("() => scrollTo(0, document.documentElement.scrollHeight)")
    # A click by the mouse might scroll to the button.
    row.get_by_role("button", name="Show image").evaluate("button => button.click()")
    image = row.locator("img.media")
    page.wait_for_function(LOADED, arg=image.element_handle())
    return image


def test_a_page_at_its_newest_message_stays_there_when_an_image_is_shown(gallery: Site) -> None:
    with open_gallery(gallery) as (page, _outside):
        page.set_viewport_size({"width": 1280, "height": 700})
        image = show_at_end(page, page.locator(".msg").nth(1))
        page.wait_for_function(IS_AT_END)
        expect(image).to_be_in_viewport(ratio=1)


def test_an_image_does_not_leave_the_view_when_it_is_shown(gallery: Site) -> None:
    with open_gallery(gallery) as (page, _outside):
        page.set_viewport_size({"width": 1280, "height": 500})
        show_at_end(page, page.locator(".msg").nth(1))
        image = show_at_end(page, page.locator(".msg").nth(0))
        page.wait_for_function(IS_BELOW_HEAD, arg=image.element_handle())
