"""Select by words in two channels, exclude one message, delete the rest, restore one author, in Chromium."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.pages.exports import SampleExport, write_sample_export
from tests.pages.serving import Site, browse_as, create_account

# The second test restores messages of the purge that the first one has made.
pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A moderator's browser, and two imported channels with a spam wave each."""

    page: Page
    site: Site
    samples: tuple[SampleExport, SampleExport]
    account: tuple[str, str]


@pytest.fixture(scope="module")
def browser_session(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserSession]:
    folder: Path = tmp_path_factory.mktemp("samples")
    until = dt.datetime.now(dt.UTC)
    folders = [folder / "one", folder / "two"]
    for place in folders:
        place.mkdir()
    one, two = (
        write_sample_export(place, until=until - dt.timedelta(seconds=n), spam=120, days=100)
        for n, place in enumerate(folders)
    )
    account = create_account("mona")
    site.manage("import_discord", *map(str, folders))
    with browse_as(account, site) as page:
        yield BrowserSession(page, site, (one, two), account)


def list_ids(page: Page, url: str) -> list[str]:
    """Return the ids of all messages in the manifest list."""
    ids: list[str] = []
    page.goto(url)
    while True:
        ids += page.locator(".entry a[href*='/channels/']", has_text="Open").evaluate_all(
            "links => links.map(link => link.getAttribute('href').split('/').at(-2))"
        )
        more = page.get_by_role("link", name="More messages")
        if not more.count():
            return ids
        more.click()
        page.wait_for_load_state()


def test_words_in_two_channels_are_purged_and_one_author_restored(browser_session: BrowserSession) -> None:
    page, (one, two) = browser_session.page, browser_session.samples
    page.goto(f"{browser_session.site.url}/channels/{one.channel_id}/")
    page.get_by_role("link", name="Delete messages …").first.click()
    page.get_by_role("button", name="Add other channels").click()
    expect(page.locator("#channels")).to_have_value(str(one.channel_id))
    page.get_by_role("combobox", name="Channels", exact=True).fill(str(two.channel_id))
    page.keyboard.press("Enter")
    expect(page.locator("#channels")).to_have_value(f"{one.channel_id}, {two.channel_id}")
    page.locator("#words").fill("cheap followers")
    # The summary follows the input without a click.
    summary = page.get_by_label("Summary")
    expect(summary).to_contain_text(
        "All messages in #general (Harbour Watch) and #general (Harbour Watch) containing the words “cheap followers”"
    )
    page.locator("#words").fill("FREE coins")
    expect(summary).to_contain_text("containing the words “FREE coins”")
    page.locator("#after").fill("tomorrow")
    expect(summary).to_contain_text("“tomorrow” is not a valid date")
    page.locator("#after").fill("")
    expect(summary).to_contain_text("containing the words “FREE coins”, except pinned")
    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.get_by_role("button", name="Delete 80 messages")).to_be_visible()
    url = re.sub(r"[?#].*", "", page.url)
    manifest = list_ids(page, f"{url}messages/")
    assert len(set(manifest)) == 80
    page.goto(url)
    expect(page.get_by_role("button", name="Exclude")).to_be_hidden()
    box = page.locator(".entry.to-delete .select-input").nth(1)
    excluded = box.get_attribute("value")
    box.click()
    page.get_by_role("button", name="Exclude 1 message").click()
    expect(page.get_by_role("button", name="Delete 79 messages")).to_be_visible()
    expect(page.locator("body")).to_contain_text("1 message excluded")

    page.get_by_label("Reason").fill("Spam in both channels")
    page.get_by_role("button", name="Delete 79 messages").click()
    expect(page.get_by_role("heading", name="Deleted 79 messages")).to_be_visible()
    for sample in (one, two):
        page.goto(f"{browser_session.site.url}/channels/{sample.channel_id}/?at={sample.spam_began:%Y-%m-%d}")
        left = page.locator(".msg", has_text="FREE coins").evaluate_all("rows => rows.map(row => row.id.slice(1))")
        assert left == ([excluded] if excluded in left else [])
        assert page.locator(".msg", has_text="last chance!!!").count() > 0

    assert sorted(list_ids(page, f"{url}messages/")) == sorted(i for i in manifest if i != excluded)
    expect(page.locator(".entry .outcome")).to_have_text(["deleted"] * 29)
    page.goto(url)
    page.get_by_role("link", name=re.compile(r"^Restore Victor \(\d+\)$")).first.click()
    page.get_by_label("Reason").fill("A joke between friends")
    page.get_by_role("button", name=re.compile(r"^Restore \d+ messages$")).click()
    expect(page.get_by_role("heading", name=re.compile(r"^Partly restored: (39|40) of 79 messages$"))).to_be_visible()
    for label in ("restored since", "still deleted"):
        expect(page.get_by_role("row", name=re.compile(rf"^{label} (39|40)$"))).to_be_visible()


def test_selected_messages_are_restored_from_the_list(browser_session: BrowserSession) -> None:
    page = browser_session.page
    page.goto(f"{browser_session.site.url}/purges/?state=partly_undone&by={browser_session.account[0]}")
    page.locator(".purge-line .title").first.click()
    page.get_by_role("link", name="Review all 79 messages").click()
    boxes = page.locator(".entry .select-input")
    boxes.nth(0).click()
    boxes.nth(2).click(modifiers=["Shift"])
    page.get_by_role("button", name="Restore 3 messages").click()
    page.get_by_label("Reason").fill("They were on topic")
    page.get_by_role("button", name="Restore 3 messages").click()
    expect(page.locator("body")).to_contain_text("restored 3 messages")
    expect(page.get_by_role("row", name=re.compile(r"^restored since (42|43)$"))).to_be_visible()
