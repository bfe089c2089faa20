"""Waiting for what a page finds within a deadline of its own, which is too short on a busy machine."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, expect

ATTEMPTS = 10
ANSWER_MS = 15_000


def expect_text(element: Locator, text: str, *, again: Callable[[], object]) -> None:
    """Wait for the text. The search may reach its deadline first and find a part; then ask again, as people do."""
    for _ in range(ATTEMPTS):
        try:
            expect(element).to_contain_text(text, timeout=ANSWER_MS)
        except AssertionError:
            again()
        else:
            return
    expect(element).to_contain_text(text)
