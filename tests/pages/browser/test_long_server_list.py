"""A list of servers that is longer than its place scrolls to the open one."""

from __future__ import annotations

from playwright.sync_api import expect

from chatstore.models import Channel
from tests.moderation.channels import make_channel
from tests.pages.serving import Site, browse_as, create_account, in_thread

MANY = 30


def make_guilds() -> Channel:
    """Return a channel of the last one by name."""
    return [make_channel(guild=f"Zeta {number:02}") for number in range(MANY)][-1]


def test_the_open_server_is_in_view(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(make_guilds)
        page.goto(f"{site.url}/channels/{channel.pk}/")
        expect(page.locator(".guilds [aria-current]")).to_be_in_viewport(ratio=1)
        # Where the list loads after the page, as on a purge's.
        page.goto(f"{site.url}/raids/{channel.pk}/")
        expect(page.locator(".guilds [aria-current]")).to_be_in_viewport(ratio=1)


def test_a_long_list_fades_only_while_more_of_it_is_below(site: Site) -> None:
    with browse_as(create_account("mona"), site) as page:
        channel = in_thread(make_guilds)
        page.goto(f"{site.url}/channels/{channel.pk}/")
        guilds = page.locator(".guilds")
        guilds.evaluate("list => list.scrollTo(0, 0)")
        expect(guilds).to_have_css("--fade-bottom", "48px")
        guilds.evaluate("list => list.scrollTo(0, list.scrollHeight)")
        expect(guilds).not_to_have_css("--fade-bottom", "48px")
