"""Import, browse, jump to a date, purge and view the result, in Chromium, with gunicorn and a real worker."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.pages.exports import SampleExport, write_sample_export
from tests.pages.serving import Site, browse_as, create_account, sign_in

pytestmark = pytest.mark.slow

TOP = "(id => document.querySelector(`#${id} .msg-head ~ *`).getBoundingClientRect().top)"
"""Of what is below the heading, which the row may lose."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A moderator's browser and an imported channel."""

    page: Page
    site: Site
    sample: SampleExport
    account: tuple[str, str]

    @property
    def channel(self) -> str:
        return f"{self.site.url}/channels/{self.sample.channel_id}/"


@pytest.fixture(scope="module")
def browser_session(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserSession]:
    folder: Path = tmp_path_factory.mktemp("sample")
    sample = write_sample_export(folder, until=dt.datetime.now(dt.UTC), spam=300, days=200)
    account = create_account("mona")
    site.manage("import_discord", str(sample.path))
    with browse_as(account, site) as page:
        yield BrowserSession(page, site, sample, account)


def shown_ids(page: Page) -> list[int]:
    return [int(i[1:]) for i in page.locator(".msg").evaluate_all("rows => rows.map(row => row.id)")]


def test_the_timeline_opens_at_its_newest_end_and_grows_upwards_in_place(browser_session: BrowserSession) -> None:
    page = browser_session.page
    page.goto(browser_session.channel)
    expect(page.locator(".msg")).to_have_count(50)
    assert page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2")
    # Far down, one turn of the wheel does not load more yet; near the top it does.
    first = page.locator(".msg").first.get_attribute("id")
    # Measured before the scroll event, which loads more.
    before = page.evaluate(f"() => {{ scrollTo(0, 700); return {TOP}({first!r}); }}")
    expect(page.locator(".msg")).to_have_count(100)
    assert abs(page.evaluate(TOP, first) - before) <= 2
    ids = shown_ids(page)
    assert ids == sorted(set(ids))
    days = page.locator(".day").evaluate_all("days => days.map(day => day.dataset.day)")
    assert len(days) == len(set(days))


def test_jumping_to_a_date_by_field_and_by_activity_strip(browser_session: BrowserSession) -> None:
    page, day = browser_session.page, browser_session.sample.spam_began.date()
    page.goto(browser_session.channel)
    page.get_by_label("Go to date").fill(day.isoformat())
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page).to_have_url(f"{browser_session.channel}?at={day.isoformat()}")
    expect(page.locator(".day").first).to_contain_text(f"{day.day} {day:%B %Y}")
    bar = page.locator(".strip a.live").first
    bar.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?at=\d{4}-\d\d-\d\dT00:00Z$"))
    assert page.locator(".strip a.here").count() >= 1


def test_shift_click_selects_a_range_and_the_button_counts(browser_session: BrowserSession) -> None:
    page = browser_session.page
    page.goto(f"{browser_session.channel}?at={browser_session.sample.spam_began:%Y-%m-%d}")
    boxes = page.locator(".msg .select-input")
    expect(page.get_by_role("button", name=re.compile(r"^Delete .* …$"))).to_be_hidden()
    boxes.nth(2).click()
    boxes.nth(6).click(modifiers=["Shift"])
    expect(page.get_by_role("button", name="Delete 5 messages …")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("button", name=re.compile(r"^Delete .* …$"))).to_be_hidden()


def test_a_copied_link_points_to_the_message(browser_session: BrowserSession) -> None:
    page = browser_session.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(browser_session.channel)
    row = page.locator(".msg").last
    row.hover()
    row.get_by_label("Copy the link to this message").click()
    expect(page.locator("#toast")).to_have_text("Link copied")
    message_id = (row.get_attribute("id") or "")[1:]
    assert page.evaluate("navigator.clipboard.readText()") == f"{browser_session.channel}{message_id}/"


def _title(messages: str) -> re.Pattern[str]:
    """Return the title of a purge; samples of other tests have a Victor, too."""
    return re.compile(rf"{messages} by Victor( \((\.\.\.\d+|@[^)]+)\))? in #general")


def test_purging_the_spam_of_an_author_leaves_the_channel_intact(browser_session: BrowserSession) -> None:
    page, sample = browser_session.page, browser_session.sample
    page.goto(f"{browser_session.channel}?at={sample.spam_began:%Y-%m-%d}")
    spam = page.locator(".msg", has_text="example/").first
    spam.scroll_into_view_if_needed()
    spam.hover()
    page.locator(".msg", has=page.locator(".author", has_text="Victor")).first.get_by_label(
        "Delete messages by Victor in this channel"
    ).click()
    expect(page.locator("#authors")).to_have_value(str(sample.victor))
    page.get_by_role("button", name="Preview", exact=True).click()

    button = page.get_by_role("button", name=f"Delete {sample.spam} messages")
    expect(button).to_be_visible()
    expect(page.locator("body")).to_contain_text(_title("All messages"))
    page.get_by_label("Reason").fill("Spam wave, reported by three members")
    button.click()
    expect(page.get_by_role("heading", name=f"Deleted {sample.spam} messages")).to_be_visible()
    # The only outcome: nothing failed or was left.
    outcomes = page.get_by_role("table", name="Totals").locator("tbody tr")
    expect(outcomes).to_have_text([re.compile(rf"^\s*Deleted\s*{sample.spam}\s*$")])

    page.get_by_role("link", name="View in #general").click()
    expect(page.locator(".gap[data-total]")).to_contain_text(f"{sample.spam} messages deleted")
    expect(page.locator(".gap[data-total]")).to_contain_text("by Mona")
    assert page.locator(".msg .author", has_text="Victor").count() == 0
    assert page.locator(".msg").count() == 50
    page.reload()
    expect(page.locator(".gap[data-total]")).to_be_visible()


def test_undoing_a_purge_restores_every_message_in_place(browser_session: BrowserSession) -> None:
    page, sample = browser_session.page, browser_session.sample
    page.goto(f"{browser_session.site.url}/purges/?state=done&by={browser_session.account[0]}")
    page.get_by_role("link", name=_title(f"{sample.spam} messages")).click()
    page.get_by_role("link", name=f"Restore {sample.spam} messages").click()
    page.get_by_label("Reason").fill("It was a joke")
    page.get_by_role("button", name=f"Restore {sample.spam} messages").click()
    expect(page.get_by_role("heading", name=f"Restored {sample.spam} messages")).to_be_visible()
    page.goto(f"{browser_session.channel}?at={sample.spam_began:%Y-%m-%d}")
    assert page.locator(".msg .author", has_text="Victor").count() > 0
    expect(page.locator(".gap[data-total]")).to_have_count(0)


def test_deleting_selected_messages_deletes_exactly_those(browser_session: BrowserSession) -> None:
    page = browser_session.page
    page.goto(browser_session.channel)
    before = shown_ids(page)
    boxes = page.locator(".msg .select-input")
    chosen = [before[-2], before[-4]]
    boxes.nth(len(before) - 2).click()
    boxes.nth(len(before) - 4).click()
    page.get_by_role("button", name="Delete 2 messages …").click()
    expect(page.get_by_role("button", name="Delete 2 messages")).to_be_visible()
    page.get_by_label("Reason").fill("off topic")
    page.get_by_role("button", name="Delete 2 messages").click()
    page.wait_for_url(re.compile(r"/purges/-?\d+/$"))
    # The purge continues without the browser that started it.
    url = page.url
    page.context.clear_cookies()
    sign_in(page, browser_session.site, browser_session.account)
    page.goto(url)
    expect(page.get_by_role("heading", name="Deleted 2 messages")).to_be_visible()
    page.goto(browser_session.channel)
    after = shown_ids(page)
    assert not set(chosen) & set(after)
    assert set(before) - set(chosen) <= set(after)


def test_signing_out_closes_every_page(browser_session: BrowserSession) -> None:
    page = browser_session.page
    page.goto(f"{browser_session.site.url}/purges/")
    page.get_by_label(re.compile("Account of")).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/sign-in/"))
    page.goto(browser_session.channel)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
