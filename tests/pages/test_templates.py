"""Templates are laid out alike: no line is longer than 120 characters, and none writes UTC beside a local time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatstore.local.layout import PROJECT_ROOT

pytestmark = pytest.mark.unit

TEMPLATES = PROJECT_ROOT / "templates"
MAX_CHARACTERS = 120


def lines() -> Iterator[tuple[Path, int, str]]:
    for path in sorted(TEMPLATES.rglob("*.html")):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield path.relative_to(TEMPLATES), number, line


def test_no_line_is_too_long() -> None:
    assert not [f"{path}:{number}" for path, number, line in lines() if len(line) > MAX_CHARACTERS]


def test_no_time_has_utc_written_beside_it() -> None:
    """Times are shown in the viewer's time zone; `deadline` adds UTC by itself."""
    assert not [f"{path}:{number}" for path, number, line in lines() if re.search(r"[%}]} UTC", line)]
