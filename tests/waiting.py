"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(happens: Callable[[], bool], *, seconds: float) -> None:
    """Looks 50 times a second; fails when it has not happened by then."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, f"nothing of it happened in {seconds} s"
        time.sleep(0.02)
