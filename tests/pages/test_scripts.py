"""Scripts and styles: a page loads little, and moves nothing for those who ask for that."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import django_htmx
import pytest

from chatstore.local.layout import PROJECT_ROOT

pytestmark = pytest.mark.unit

STATIC = PROJECT_ROOT / "moderation" / "static" / "moderation"
HTMX = Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js"
MAX_BYTES = 60_000


def test_all_scripts_together_are_small() -> None:
    scripts = [HTMX, *STATIC.glob("*.js")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in scripts) <= MAX_BYTES


def test_nothing_moves_for_those_who_prefer_reduced_motion() -> None:
    styles = (STATIC / "app.css").read_text()
    allowed = re.compile(
        r"@(media \(prefers-reduced-motion: no-preference\)|supports \(animation-timeline: scroll\(\)\)) \{.*?\n\}",
        re.DOTALL,
    )
    assert re.search(r"\b(transition|animation|scroll-behavior)\s*:", allowed.sub("", styles)) is None
    # What follows one's own scrolling only fades the edges.
    for steps in re.findall(r"@keyframes [\w-]+ \{(.*?)\n\}", styles, re.DOTALL):
        assert set(re.findall(r"([\w-]+):", steps)) <= {f"--fade-{edge}" for edge in ("left", "right", "top", "bottom")}
    scripts = "".join(path.read_text() for path in STATIC.glob("*.js"))
    assert "smooth" not in scripts
