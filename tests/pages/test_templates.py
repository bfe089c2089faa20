"""Templates are laid out alike: short lines, no UTC written beside a local time, and a use for every style."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatstore.local.layout import PROJECT_ROOT

pytestmark = pytest.mark.unit

TEMPLATES = PROJECT_ROOT / "templates"
MAX_CHARACTERS = 120

COMPOSED_CLASSES = re.compile(r"(tone|level)\d|is-[a-z-]+|(full|bucket)-repair")
"""Classes whose names are composed of a prefix and a value, so that no source contains them."""


def lines() -> Iterator[tuple[Path, int, str]]:
    for path in sorted(TEMPLATES.rglob("*.html")):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield path.relative_to(TEMPLATES), number, line


def test_no_line_is_too_long() -> None:
    assert not [f"{path}:{number}" for path, number, line in lines() if len(line) > MAX_CHARACTERS]


def test_no_time_has_utc_written_beside_it() -> None:
    """Times are shown in the viewer's time zone; `deadline` adds UTC by itself."""
    assert not [f"{path}:{number}" for path, number, line in lines() if re.search(r"[%}]} UTC", line)]


def test_dots_between_facts_are_set_by_the_style_sheet() -> None:
    """Written into a text, a dot begins or ends a line where the text wraps."""
    never_wraps = {"base_bare.html", "moderation/search/_jump.html"}
    assert {str(path) for path, _number, line in lines() if "·" in line} == never_wraps


def test_every_class_of_the_stylesheet_is_used() -> None:
    """A class that was renamed in one place only loses its style without any error."""
    app = PROJECT_ROOT / "moderation"
    styles = re.sub(r"/\*.*?\*/", "", (app / "static/moderation/app.css").read_text(), flags=re.DOTALL)
    sources = [*TEMPLATES.rglob("*.html"), *app.rglob("*.py"), *app.rglob("*.js")]
    words = set(re.findall(r"[\w-]+", " ".join(path.read_text() for path in sources)))
    classes = set(re.findall(r"\.([a-z][\w-]*)", styles))
    assert {name for name in classes - words if not COMPOSED_CLASSES.fullmatch(name)} == set()
