"""A mention of a user opens them beside the page, also where the site is below a path of its host."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from chatstore.models import Channel
from tests.moderation.channels import VICTOR, WILMA, make_channel, name_authors, old_ids, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

PREFIX = "/chat"


def make_talk() -> Channel:
    name_authors()
    channel = make_channel()
    write(channel, old_ids(1), author=WILMA, content=f"<@{VICTOR}>")
    return channel


def move_users(route: Route) -> None:
    """Give links to users the path that they have below a prefix."""
    response = route.fetch()
    route.fulfill(response=response, body=response.text().replace('href="/users/', f'href="{PREFIX}/users/'))


def test_a_mention_opens_the_user_beside_the_page(site: Site) -> None:
    channel = in_thread(make_talk)
    url = f"{site.url}/channels/{channel.pk}/"
    with browse_as(create_account("mona"), site) as page:
        page.route(url, move_users)
        page.route(f"{site.url}{PREFIX}/**", lambda route: route.continue_(url=route.request.url.replace(PREFIX, "")))
        page.goto(url)
        mention = page.get_by_role("link", name=f"@Victor {VICTOR}")
        expect(mention).to_have_attribute("href", f"{PREFIX}/users/{VICTOR}/")
        mention.click()
        expect(page.locator("#panel h2")).to_have_text("Victor 71")
        expect(page).to_have_url(url)
