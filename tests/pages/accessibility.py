"""Checks of a page by axe-core, and by its rule for the size of targets (WCAG 2.2, 2.5.8), which is off by default."""

from __future__ import annotations

from collections.abc import Sequence

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_AXE = Axe()
_OPTIONS = {"rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"]}
COLOR_RULES = ("color-contrast", "link-in-text-block")
"""Rules whose result depends on the color scheme: all that a page is checked for in its second one."""

MAX_NODES = 3


def violations_of(page: Page, *, only: Sequence[str] = ()) -> list[str]:
    """Return what axe-core finds: the rule, and the first elements that break it. only: the rules that run."""
    options = {**_OPTIONS, "rules": {}, "runOnly": [*only]} if only else _OPTIONS
    violations = _AXE.run(page, options=options).response["violations"]
    return [
        f"{violation['id']} ({violation['impact']}): "
        + "; ".join(" ".join(map(str, node["target"])) for node in violation["nodes"][:MAX_NODES])
        for violation in violations
    ]
