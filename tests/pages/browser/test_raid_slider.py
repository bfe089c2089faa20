"""The two handles below the chart of a raid choose its time, by keyboard and by mouse, and do not cross."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from chatstore.operations.coordination.clock import postgres_now
from chatstore.store.activity import busy_channels
from moderation.operations.raids.detection import check_raids
from tests.moderation.raids import Raid, forget_raids, write_raid
from tests.pages.serving import Site, browse_as, create_account
from tests.waiting import wait_until

INSIDE_PX = 8
"""From the end of the slider to a place on the handle that is there, whatever its size."""

REST_MS = 2_000
"""More than the page waits for further keys before it is loaded."""


@pytest.fixture
def page(_open_databases: None, site: Site) -> Iterator[Page]:
    """Open the page of a raid of five minutes, with which the chart has several bars."""
    raid = write_raid(raiders=25, apart_ms=2_400)
    wait_until(lambda: raid.channel.pk in busy_channels(20))
    check_raids(postgres_now())
    with browse_as(create_account("mona"), site) as opened:
        opened.goto(url_of(raid, site))
        yield opened
    forget_raids()


def url_of(raid: Raid, site: Site) -> str:
    return f"{site.url}/raids/{raid.channel.pk}/"


def handles(page: Page) -> tuple[Locator, Locator]:
    return page.get_by_role("slider", name="From"), page.get_by_role("slider", name="Until")


def times(page: Page) -> tuple[int, int]:
    """Return the minutes that the two lists have; without an end, the last one is "now"."""
    start, end = (page.get_by_role("combobox", name=name).input_value() for name in ("From", "Until"))
    return int(start), int(end) if end else 1 << 60


def value_of(handle: Locator) -> int:
    return int(handle.input_value())


def last_value(handle: Locator) -> int:
    return int(handle.get_attribute("max") or 0)


def freeze(page: Page) -> None:
    """Open the page again with a clock that stands still, so that it is not loaded when the keys rest."""
    page.clock.install()
    page.reload()
    page.clock.pause_at(dt.datetime.fromtimestamp(page.evaluate("() => Date.now()") / 1_000 + 1, dt.UTC))


def drag(page: Page, handle: Locator, *, at: float, to: float) -> None:
    """Drag a handle from one part of the slider's width to another one."""
    box = handle.bounding_box()
    assert box is not None
    width, y = box["width"] - 2 * INSIDE_PX, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + INSIDE_PX + at * width, y)
    page.mouse.down()
    page.mouse.move(box["x"] + INSIDE_PX + to * width, y, steps=8)
    page.mouse.up()


def expect_loaded(page: Page) -> None:
    """Wait until the page is loaded for another time, with which its chart begins and ends."""
    expect(page.get_by_role("button", name="Show the whole raid")).to_be_visible()
    expect(handles(page)[0]).to_have_js_property("value", "0")
    expect(handles(page)[1]).to_have_js_property("value", handles(page)[1].get_attribute("max"))


def test_the_end_is_chosen_by_keys(page: Page) -> None:
    start, end = times(page)
    _, until = handles(page)
    until.press("ArrowLeft")
    expect_loaded(page)
    assert times(page)[0] == start
    assert start < times(page)[1] < end


@pytest.mark.parametrize("name", ["From", "Until"])
def test_a_handle_is_dragged_with_the_mouse(name: str, page: Page) -> None:
    start, end = times(page)
    handle = page.get_by_role("slider", name=name)
    drag(page, handle, at=0 if name == "From" else 1, to=0.5)
    expect_loaded(page)
    shown_start, shown_end = times(page)
    if name == "From":
        assert start < shown_start < shown_end == end
    else:
        assert start == shown_start < shown_end < end


def test_a_handle_says_its_time_and_the_lists_follow_it(page: Page) -> None:
    freeze(page)
    begin, until = handles(page)
    for handle, key, name in ((begin, "ArrowRight", "From"), (until, "ArrowLeft", "Until")):
        before = handle.get_attribute("aria-valuetext")
        handle.press(key)
        chosen = page.get_by_role("combobox", name=name).locator("option:checked").inner_text()
        assert handle.get_attribute("aria-valuetext") == chosen != before
    page.clock.run_for(REST_MS)
    expect_loaded(page)


def test_the_handles_do_not_cross_by_keys(page: Page) -> None:
    freeze(page)
    begin, until = handles(page)
    last = last_value(until)
    assert last >= 3
    begin.press("End")
    assert (value_of(begin), value_of(until)) == (last - 1, last)
    until.press("Home")
    assert (value_of(begin), value_of(until)) == (last - 1, last)
    begin.press("Home")
    until.press("Home")
    assert (value_of(begin), value_of(until)) == (0, 1)
    begin.press("End")
    assert (value_of(begin), value_of(until)) == (0, 1)
    start, end = times(page)
    assert start < end


def test_the_handles_do_not_cross_by_mouse(page: Page) -> None:
    freeze(page)
    begin, until = handles(page)
    last = last_value(until)
    drag(page, begin, at=0, to=1)
    assert (value_of(begin), value_of(until)) == (last - 1, last)
    # And back from there.
    drag(page, begin, at=(last - 1) / last, to=0)
    assert (value_of(begin), value_of(until)) == (0, last)
    drag(page, until, at=1, to=0)
    assert (value_of(begin), value_of(until)) == (0, 1)
    page.clock.run_for(REST_MS)
    expect(page.get_by_role("button", name=re.compile("^Show the whole raid"))).to_be_visible()
