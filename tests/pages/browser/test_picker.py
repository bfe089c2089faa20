"""Chips of users and channels in the composer: choosing, removing, keys, pasted IDs, and roles for screen readers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser
from tests.moderation.channels import make_channel, now_ms, old_ids, write
from tests.pages.browser.asking_again import expect_text
from tests.pages.serving import Site, browse_as, create_account, in_thread


@dataclass(frozen=True, slots=True)
class Cast:
    """Two channels of the same name in two guilds, in both of which the first of two users of a name has posted."""

    name: str
    channels: list[Channel]
    people: list[ChatUser]


def make_cast() -> Cast:
    name = f"pier-{secrets.token_hex(4)}"
    channels = [make_channel(guild=guild, name=name) for guild in ("Harbour", "Tidewalkers")]
    people = [
        ChatUser.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(20) << 1 | n, name=f"{name}-{n}")
        for n in range(2)
    ]
    for channel, count in zip(channels, (3, 4), strict=True):
        write(channel, old_ids(count), author=people[0].pk)
    return Cast(name, channels, people)


@pytest.fixture
def composer(site: Site) -> Iterator[tuple[Page, Cast]]:
    account = create_account("mona")
    with browse_as(account, site) as page:
        cast = in_thread(make_cast)
        page.goto(f"{site.url}/delete/")
        yield page, cast


def chips_of(field: Locator) -> Locator:
    return field.locator("xpath=ancestor::*[@data-picker]").locator(".picked li")


def test_people_and_channels_are_chosen_without_an_id(composer: tuple[Page, Cast]) -> None:
    page, cast = composer
    channels = page.get_by_role("combobox", name="Channels", exact=True)
    channels.press_sequentially(cast.name[:-1])
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_count(2)
    for guild in ("Harbour", "Tidewalkers"):
        options.filter(has_text=guild).click()
    expect(options.filter(has_text="Harbour")).to_have_attribute("aria-selected", "true")
    expect(chips_of(channels)).to_have_text([re.compile("Harbour"), re.compile("Tidewalkers")])
    expect(page.locator("#channels")).to_have_value(f"{cast.channels[0].pk}, {cast.channels[1].pk}")

    people = page.get_by_role("combobox", name="Written by").first
    one, other = (options.filter(has_text=f"@{cast.name}-{n}") for n in range(2))

    def type_again() -> None:
        people.fill("")
        people.press_sequentially(f"@{cast.name}")
        expect(options).to_have_count(2)

    type_again()
    expect_text(one, "7 messages", again=type_again)
    expect_text(other, "0 messages", again=type_again)
    one.click()
    # Two people with one name: the chip has the handle.
    expect(chips_of(people)).to_contain_text([f"@{cast.name}-0"])
    expect(chips_of(people)).not_to_contain_text(["account created"])
    matches = page.get_by_role("region", name="First matches")

    def search_again() -> None:
        page.locator("#authors").dispatch_event("input")

    expect_text(matches, "7 matches", again=search_again)
    page.get_by_role("button", name=f"Remove #{cast.name}").first.click()
    expect_text(matches, "4 matches", again=search_again)
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.get_by_role("button", name="Delete 4 messages")).to_be_visible()


def test_a_server_is_chosen_from_those_offered_before_anything_is_typed(composer: tuple[Page, Cast]) -> None:
    page, cast = composer
    server = page.get_by_role("combobox", name="Or a whole server")
    server.click()
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options.first).to_be_visible()
    server.press_sequentially(str(cast.channels[1].guild_id))
    expect(options).to_have_text(["Tidewalkers"])
    server.press("Enter")
    expect(chips_of(server)).to_have_text([re.compile("Tidewalkers")])
    expect(page.get_by_role("listbox")).to_have_count(0)

    # Only its channels are offered now.
    page.get_by_role("combobox", name="Channels", exact=True).press_sequentially(cast.name)
    expect(options).to_have_count(1)
    expect(options).to_contain_text("Tidewalkers")


def test_the_keys_of_a_combobox_choose_and_remove(composer: tuple[Page, Cast]) -> None:
    page, cast = composer
    people = page.get_by_role("combobox", name="Written by").first
    expect(people).to_have_attribute("aria-expanded", "false")
    people.press_sequentially(cast.name)
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_count(2)
    expect(people).to_have_attribute("aria-expanded", "true")
    first, second = (options.nth(n).get_attribute("id") for n in range(2))
    expect(people).to_have_attribute("aria-activedescendant", first or "")
    people.press("ArrowDown")
    expect(people).to_have_attribute("aria-activedescendant", second or "")
    people.press("ArrowDown")
    expect(people).to_have_attribute("aria-activedescendant", first or "")
    people.press("ArrowUp")
    people.press("Enter")
    expect(chips_of(people)).to_have_text([re.compile(rf"{cast.name}-1✕")])
    expect(page.get_by_role("status").filter(has_text=f"Added: {cast.name}-1")).to_be_attached()
    people.press("ArrowUp")
    people.press("Enter")
    expect(chips_of(people)).to_have_count(2)
    people.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    people.press("Backspace")
    expect(chips_of(people)).to_have_count(1)
    expect(page.locator("#authors")).to_have_value(str(cast.people[1].pk))
    people.press("Shift+Tab")
    expect(page.get_by_role("button", name=f"Remove {cast.name}-1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(chips_of(people)).to_have_count(0)
    expect(people).to_be_focused()


def test_pasted_ids_become_names_and_unknown_names_stay_as_typed(composer: tuple[Page, Cast]) -> None:
    page, cast = composer
    ids = [str(person.pk) for person in cast.people]
    people = page.get_by_role("combobox", name="Written by").first
    people.evaluate(
        "(field, text) => { const clipboardData = new DataTransfer(); clipboardData.setData('text', text);"
        " field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })); }",
        "\n".join(ids),
    )
    expect(chips_of(people)).to_have_text([re.compile(rf"{cast.name}-{n}✕") for n in range(2)])
    expect(page.locator("#authors")).to_have_value(", ".join(ids))
    unknown = f"no one {cast.name}"
    people.press_sequentially(unknown)
    expect(page.get_by_text("No user with this name or ID.").first).to_be_visible()
    people.press("Enter")
    expect(chips_of(people)).to_have_count(3)
    expect(page.get_by_label("Summary")).to_contain_text(f"There is no user called “{unknown}”.")


def test_the_browsers_back_button_shows_what_is_submitted(composer: tuple[Page, Cast], site: Site) -> None:
    page, cast = composer
    page.goto(f"{site.url}/delete/?authors={cast.people[0].pk}")
    people = page.get_by_role("combobox", name="Written by").first
    expect(chips_of(people)).to_have_text([re.compile(rf"{cast.name}-0✕")])
    people.press("Backspace")
    page.locator("#words").fill("hello")
    expect(page.locator("#authors")).to_have_value("")
    page.goto(f"{site.url}/purges/")
    page.go_back()
    shown = chips_of(page.get_by_role("combobox", name="Written by").first).count()
    assert page.locator("#authors").input_value().count(str(cast.people[0].pk)) == shown


def test_a_filter_of_the_audit_log_takes_one_channel_and_one_user(site: Site) -> None:
    with browse_as(create_account("ada"), site) as page:
        cast = in_thread(make_cast)
        page.goto(f"{site.url}/audit/")
        channel = page.get_by_role("combobox", name="Channel", exact=True)
        options = page.get_by_role("listbox").get_by_role("option")
        for guild in ("Harbour", "Tidewalkers"):
            channel.press_sequentially(cast.name)
            options.filter(has_text=guild).click()
        expect(chips_of(channel)).to_have_text([re.compile("Tidewalkers")])
        user = page.get_by_role("combobox", name="User", exact=True)
        user.press_sequentially(f"{cast.name}-1")
        expect(options).to_have_count(1)
        user.press("Enter")
        page.get_by_role("button", name="Apply filters").click()
        page.wait_for_url(re.compile(rf"channel={cast.channels[1].pk}&user={cast.people[1].pk}"))
        expect(chips_of(user)).to_have_text([re.compile(rf"{cast.name}-1✕")])
        expect(page.get_by_text("No entries match these filters.")).to_be_visible()
        page.get_by_role("button", name=f"Remove {cast.name}-1").click()
        expect(page.locator("#user")).to_have_value("")
