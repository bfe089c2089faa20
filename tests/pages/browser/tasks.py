"""Tasks of moderators, with a limit of clicks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, Position

from tests.pages.serving import Site


@dataclass(slots=True)
class Clicks:
    """Counts the clicks of a task."""

    count: int = 0

    def __call__(self, target: Locator, *, shift: bool = False) -> None:
        target.click(modifiers=["Shift"] if shift else [])
        self.count += 1

    def drag(self, start: Locator, end: Locator, *, x: int) -> None:
        """Drag from one row to another, x pixels right of where they begin: that is one click."""
        mouse, position = start.page.mouse, Position(x=x, y=8)
        start.hover(position=position)
        mouse.down()
        end.hover(position=position)
        mouse.up()
        self.count += 1


@contextmanager
def task(name: str, page: Page, site: Site, *, limit: int) -> Iterator[Clicks]:
    """Begin at Home; fail if the task took more clicks than allowed."""
    page.goto(site.url)
    clicks, start = Clicks(), time.monotonic()
    yield clicks
    print(f"{name}: {clicks.count} clicks, {time.monotonic() - start:.1f} s")
    assert clicks.count <= limit
