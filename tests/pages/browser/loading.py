"""Loading all rows of a timeline at one of its ends."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

_HAS_LOADED = "([rows, link]) => document.querySelectorAll('.msg').length > rows || !document.querySelector(link)"


def load_rest(page: Page, link: str, *, ask: Callable[[], object]) -> None:
    """Ask for more rows until the link of that end is gone."""
    rows = page.locator(".msg")
    while page.locator(link).count():
        before = rows.count()
        ask()
        # The last rows may have arrived before they were counted.
        page.wait_for_function(_HAS_LOADED, arg=[before, link])
