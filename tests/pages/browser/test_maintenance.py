"""Live preview of a schedule and live progress of a run, in Chromium and against a real worker."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from chatstore.domain.runs import ENDED
from chatstore.models import JobRun
from chatstore.operations.coordination.clock import postgres_now
from tests.chatstore.operations.jobs import make_ended_run
from tests.pages.serving import Site, browse_as, create_account, in_thread


@pytest.fixture(scope="module")
def browser_session(site: Site) -> Iterator[tuple[Page, Site]]:
    """An operator's browser without open runs: holds placed by other tests have requested one."""
    JobRun.objects.filter(job="expire").exclude(state__in=ENDED).delete()
    with browse_as(create_account("otto"), site) as page:
        yield page, site


def test_a_typed_schedule_is_previewed_with_its_next_times_and_not_saved(browser_session: tuple[Page, Site]) -> None:
    page, site = browser_session
    page.goto(f"{site.url}/maintenance/jobs/expire/")
    page.get_by_label("Schedule (cron)").fill("0 5 1 * *")
    expect(page.locator("#preview")).to_contain_text("At 05:00 on the first day of every month")
    expect(page.locator("#preview li")).to_have_count(5)
    zone, wrong = page.get_by_label("Time zone"), page.locator("[aria-invalid]")
    edge = zone.evaluate("field => getComputedStyle(field).borderColor")
    zone.fill("Berlin")
    expect(page.locator("#zone-error")).to_contain_text("Unknown time zone “Berlin”")
    expect(wrong).to_have_count(1)
    expect(zone).to_have_attribute("aria-invalid", "true")
    expect(zone).to_have_accessible_description(re.compile("Unknown time zone “Berlin”"))
    expect(zone).not_to_have_css("border-color", edge)
    zone.fill("Europe/Berlin")
    expect(wrong).to_have_count(0)
    expect(page.locator("#zone-error")).to_be_empty()
    expect(zone).to_have_attribute("aria-describedby", "zone-hint")
    page.get_by_label("Enabled").uncheck()
    expect(page.locator("#preview")).to_contain_text("Disabled")


def test_a_requested_run_finishes_on_the_open_page(browser_session: tuple[Page, Site]) -> None:
    page, site = browser_session
    page.goto(f"{site.url}/maintenance/jobs/expire/")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_have_text("Close expired undos")
    expect(page.locator("#state")).to_have_text("done")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()


def end_thirty_runs() -> None:
    now = postgres_now()
    for days in range(30):
        make_ended_run("expire", at=now - dt.timedelta(days=days))


def test_the_marks_of_the_last_thirty_runs_are_as_wide_as_their_card(browser_session: tuple[Page, Site]) -> None:
    page, site = browser_session
    in_thread(end_thirty_runs)
    for width in (360, 390, 1280, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{site.url}/maintenance/jobs/expire/")
        marks = page.locator(".run-marks > li")
        expect(marks).to_have_count(30)
        ends = marks.evaluate_all("marks => Math.max(...marks.map(mark => mark.getBoundingClientRect().right))")
        card = page.locator(".run-marks-card").bounding_box()
        assert card is not None
        assert abs(card["x"] + card["width"] - ends) <= 4, width
