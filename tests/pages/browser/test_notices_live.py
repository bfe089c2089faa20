"""A raid that begins while a page is open is noticed there without a reload, and what is being done goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from chatstore.domain.runs import Severity
from chatstore.models import Channel
from chatstore.operations.findings.records import Problem, open_finding
from moderation.operations.raids.detection import RAID
from tests.moderation.channels import make_channel, now_ms, recent_ids, write
from tests.moderation.raids import forget_raids
from tests.pages.serving import Site, browse_as, create_account, in_thread

COME_BACK = "() => document.dispatchEvent(new Event('visibilitychange'))"
"""As when the tab is shown again."""


@pytest.fixture(autouse=True)
def _no_raids(_open_databases: None) -> Iterator[None]:
    in_thread(forget_raids)
    yield
    in_thread(forget_raids)


@pytest.fixture
def page(site: Site) -> Iterator[Page]:
    with browse_as(create_account("mona"), site) as page:
        yield page


def make_talk() -> Channel:
    channel = make_channel(guild="Harbour")
    write(channel, recent_ids(60))
    return channel


def begin_raid(summary: str) -> Channel:
    channel = make_channel(guild="Tidewalkers")
    details = {"since_ms": now_ms()}
    open_finding(RAID, str(channel.pk), Problem(Severity.CRITICAL, summary, details))
    return channel


def test_a_raid_elsewhere_is_noticed_in_an_open_timeline(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/channels/{in_thread(make_talk).pk}/#end")
    rows = page.locator(".msg")
    rows.last.get_by_role("checkbox").check()
    expect(rows.last).to_be_in_viewport()
    raided = in_thread(lambda: begin_raid("Possible raid in #elsewhere"))
    notice = page.locator(".page-notice.critical")
    # By itself, without a reload.
    expect(notice).to_contain_text("Possible raid in #elsewhere")
    expect(notice.get_by_role("link", name="Review and clear")).to_have_attribute("href", f"/raids/{raided.pk}/")
    expect(notice).to_be_in_viewport(ratio=1)
    expect(page.locator("#notices-status")).to_contain_text("Possible raid in #elsewhere")
    expect(rows.last.get_by_role("checkbox")).to_be_checked()
    expect(rows.last).to_be_in_viewport(ratio=1)
    heading = page.get_by_role("heading", level=1).bounding_box()
    below = notice.bounding_box()
    assert heading is not None
    assert below is not None
    assert below["y"] + below["height"] <= heading["y"]


@pytest.mark.parametrize("top", ["the end", "some row"])
def test_notices_that_come_move_no_row_of_an_open_timeline(top: str, page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    channel = in_thread(make_talk)
    page.goto(f"{site.url}/channels/{channel.pk}/#end")
    expect(page.locator(".msg").last).to_be_in_viewport(ratio=1)
    row = page.locator(".msg").nth(-1 if top == "the end" else -12)
    if top != "the end":
        row.evaluate("row => scrollBy(0, row.getBoundingClientRect().top - 400)")
    page.wait_for_timeout(300)
    before = row.bounding_box()
    for number in range(3):
        in_thread(lambda number=number: begin_raid(f"Possible raid {number}"))
    page.evaluate(COME_BACK)
    expect(page.locator(".page-notice.critical")).to_have_count(3)
    after = row.bounding_box()
    assert before is not None
    assert after is not None
    assert after["y"] == pytest.approx(before["y"], abs=2)


def test_only_new_notices_are_read_out_and_none_changes_while_it_is_used(page: Page, site: Site) -> None:
    in_thread(lambda: begin_raid("The first raid"))
    page.goto(f"{site.url}/preferences/")
    notices, status = page.locator(".page-notice.critical"), page.locator("#notices-status")
    expect(notices).to_have_count(1)
    expect(status).to_be_empty()
    notices.first.get_by_role("link").focus()
    in_thread(lambda: begin_raid("The second raid"))
    page.evaluate("() => document.addEventListener('htmx:beforeSend', () => { window.sent = true; })")
    page.evaluate(COME_BACK)
    assert page.evaluate("window.sent") is None
    page.locator("main").focus()
    page.evaluate(COME_BACK)
    expect(notices).to_have_count(2)
    expect(status).to_contain_text("The second raid")
    expect(status).not_to_contain_text("The first raid")
    in_thread(forget_raids)
    page.evaluate(COME_BACK)
    expect(notices).to_have_count(0)
    expect(status).to_be_empty()
