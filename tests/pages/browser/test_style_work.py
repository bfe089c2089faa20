"""How many elements' styles Chromium computes: each once when a channel is opened, and few when a row is selected.

A rule of the stylesheet such as `body:has(…)`, a class that a script sets on the root or a property that the root hands
down makes it compute all of them again, which is most of what opening a channel costs.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.pages.exports import write_sample_export
from tests.pages.serving import Site, browse_as, create_account


@pytest.fixture
def channel(site: Site, tmp_path: Path) -> Iterator[tuple[Page, str]]:
    sample = write_sample_export(tmp_path, until=dt.datetime.now(dt.UTC))
    site.manage("import_discord", str(sample.path))
    with browse_as(create_account("mona"), site) as page:
        yield page, f"{site.url}/channels/{sample.channel_id}/"


def count_computed(page: Page, act: Callable[[], object]) -> int:
    """Return the number of elements whose style was computed during an act and the frames after it."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    act()
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100)))")
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return sum(event["args"].get("elementCount", 0) for event in events if event["name"] == "UpdateLayoutTree")


def test_the_style_of_few_elements_is_computed_more_than_once(channel: tuple[Page, str]) -> None:
    page, url = channel
    page.goto(url)
    opened = count_computed(page, lambda: page.goto(url))
    elements = page.locator("*").count()
    assert elements <= opened <= elements * 2.5
    row = page.locator(".msg").nth(-3)
    selected = count_computed(page, lambda: row.locator(".select-input").check())
    assert 0 < selected <= elements / 4
    page.keyboard.press("Escape")
    shown = count_computed(page, lambda: row.locator("a[data-copy]").click())
    expect(page.locator("#toast")).to_contain_text("copied")
    assert 0 < shown <= elements / 4
