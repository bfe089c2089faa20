"""What moderators do most, from Home, with a limit of clicks; typing and keys are no clicks. Prints the times.

Clearing a raid, the fifth one, has a file of its own.
"""

from __future__ import annotations

import datetime as dt
import re
import secrets
import time
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, expect
from redis import Redis

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser
from chatstore.store import activity
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from tests.conftest import make_user
from tests.moderation.channels import make_channel, now_ms, purge_now, recent_ids, write
from tests.pages.browser.tasks import task
from tests.pages.serving import Site, browse_as, create_account, in_thread

SPAMMED_CHANNELS = 17


@pytest.fixture(scope="module")
def page(site: Site) -> Iterator[Page]:
    with browse_as(create_account("mona"), site) as opened:
        yield opened


def find(page: Page, text: str) -> Locator:
    """Type into the search box; return the first suggestion for all of the text.

    A part of a link ends with an ID, too, and has suggestions of its own until those for the whole link are there.
    """
    page.keyboard.press("/")
    page.keyboard.type(text)
    return page.locator(f".suggestions [data-query='{text}'] a").first


def shown_ids(page: Page) -> list[str]:
    return list(page.locator(".msg").evaluate_all("rows => rows.map(row => row.id)"))


def write_spam() -> ChatUser:
    """Write messages of a spammer in many channels, and of another user in each."""
    name = f"spam{secrets.token_hex(4)}"
    spammer = ChatUser.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name=name)
    for _ in range(SPAMMED_CHANNELS):
        channel, ids = make_channel(), recent_ids(4)
        write(channel, ids[::2], author=spammer.pk, content="cheap coins")
        write(channel, ids[1::2], content="good morning")
    return spammer


def write_chat(site: Site) -> Channel:
    """Write messages in a channel that Home shows, because it has the newest message."""
    channel = make_channel(guild="Harbour", name=f"pier-{secrets.randbelow(10**6)}")
    write(channel, recent_ids(30, minutes_ago=1))
    with Redis.from_url(site.environ["REDIS_URL"]) as client:
        client.zadd(activity.KEY, {str(channel.pk): time.time()})
    return channel


def write_purge() -> tuple[Channel, list[int], ChatUser]:
    """Delete the messages of two users; return their channel, the messages of the first user, and the user."""
    channel, ids = make_channel(), recent_ids(8)
    people = [
        ChatUser.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name=f"{name}{channel.pk % 10**6}")
        for name in ("ines", "jonas")
    ]
    for number, person in enumerate(people):
        write(channel, ids[number::2], author=person.pk)
    where = Author(tuple(person.pk for person in people))
    purge_now(make_user("mona", group="moderators"), Selection(channel_ids=(channel.pk,), where=where))
    return channel, ids[::2], people[0]


def test_everything_by_a_spammer_in_many_channels_is_deleted(page: Page, site: Site) -> None:
    spammer = in_thread(write_spam)
    count = 2 * SPAMMED_CHANNELS
    with task("Spammer in 17 channels", page, site, limit=5) as click:
        click(find(page, f"@{spammer.name}"))
        click(page.get_by_role("form", name="Everywhere").get_by_role("button", name="All"))
        delete = page.get_by_role("button", name=f"Delete {count} messages")
        expect(delete).to_be_visible()
        page.get_by_label("Reason").fill("Spam")
        click(delete)
        expect(page.get_by_role("heading", name=f"Deleted {count} messages")).to_be_visible()


def test_ten_messages_are_deleted_by_a_shift_click(page: Page, site: Site) -> None:
    channel = in_thread(partial(write_chat, site))
    with task("Ten messages", page, site, limit=4) as click:
        click(page.locator(".channel-card", has_text=f"#{channel.name}"))
        boxes = page.locator(".msg .select-input")
        ids = shown_ids(page)
        click(boxes.nth(12))
        click(boxes.nth(21), shift=True)
        page.keyboard.press("Delete")
        delete = page.get_by_role("button", name="Delete 10 messages")
        page.get_by_label("Reason").fill("Off topic")
        click(delete)
        expect(page.get_by_role("heading", name="Deleted 10 messages")).to_be_visible()
    page.goto(f"{site.url}/channels/{channel.pk}/")
    assert shown_ids(page) == ids[:12] + ids[22:]


def test_ten_messages_are_deleted_by_mouse_alone(page: Page, site: Site) -> None:
    channel = in_thread(partial(write_chat, site))
    with task("Ten messages by mouse", page, site, limit=5) as click:
        click(page.locator(".channel-card", has_text=f"#{channel.name}"))
        rows = page.locator(".msg")
        ids = shown_ids(page)
        # Beside the texts: those are what a drag over them selects.
        click.drag(rows.nth(12), rows.nth(21), x=68)
        click(page.get_by_role("button", name="Delete 10 messages …"))
        click(page.get_by_role("button", name="Spam", exact=True))
        click(page.get_by_role("button", name="Delete 10 messages", exact=True))
        expect(page.get_by_role("heading", name="Deleted 10 messages")).to_be_visible()
    page.goto(f"{site.url}/channels/{channel.pk}/")
    assert shown_ids(page) == ids[:12] + ids[22:]


def test_a_pasted_link_leads_to_who_deleted_the_message(page: Page, site: Site) -> None:
    channel, ids, _ = in_thread(write_purge)
    with task("Who deleted a message", page, site, limit=1) as click:
        click(find(page, f"https://discord.com/channels/1/{channel.pk}/{ids[0]}"))
        expect(page.get_by_role("main")).to_contain_text(re.compile("Deleted .* by mona"))


def test_a_pasted_id_leads_to_who_deleted_the_message_and_when(page: Page, site: Site) -> None:
    channel, ids, _ = in_thread(write_purge)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with task("Who deleted an ID", page, site, limit=0):
        page.evaluate("text => navigator.clipboard.writeText(text)", str(ids[0]))
        page.keyboard.press("/")
        page.keyboard.press("Control+v")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site.url}/channels/{channel.pk}/{ids[0]}/")
        answer = page.get_by_role("main").locator(".summary")
        expect(answer).to_have_text(re.compile(r"Deleted .* UTC by mona"))
    deleted_at = dt.datetime.fromisoformat(answer.locator("time").get_attribute("datetime") or "")
    assert dt.timedelta() < dt.datetime.now(dt.UTC) - deleted_at < dt.timedelta(hours=1)


def test_one_author_of_a_purge_is_restored(page: Page, site: Site) -> None:
    channel, ids, author = in_thread(write_purge)
    with task("One author restored", page, site, limit=3) as click:
        click(page.locator(".purge-line a.title", has_text=author.name).first)
        click(page.get_by_role("link", name=f"Restore {author.name} ({len(ids)})"))
        page.get_by_label("Reason").fill("Appeal accepted")
        click(page.get_by_role("button", name=f"Restore {len(ids)} messages"))
        expect(page.locator(".chip", has_text="partly restored").first).to_be_visible()
    page.goto(f"{site.url}/channels/{channel.pk}/")
    assert page.locator(".msg").count() == len(ids)
