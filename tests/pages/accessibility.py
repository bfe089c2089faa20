"""Checks of a page by axe-core, and by its rule for the size of targets (WCAG 2.2, 2.5.8), which is off by default."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_SCRIPT = Axe().axe_script
_TARGET_SIZE = "target-size"
_OPTIONS = {"rules": {_TARGET_SIZE: {"enabled": True}}, "resultTypes": ["violations"]}
COLOR_RULES = ("color-contrast", "link-in-text-block")
"""Rules whose result depends on the color scheme: all that a page is checked for in its second one."""

Scheme = Literal["light", "dark"]
SCHEMES: dict[Scheme, tuple[str, ...]] = {"light": (), "dark": COLOR_RULES}
"""Color schemes, with the rules of axe-core that are checked in each; all if there are none."""

MAX_NODES = 3

_IS_TOO_SMALL = """async ([selector, rule]) => {
  const element = document.querySelector(selector);
  const positions = [];
  for (let at = element; at; at = at.parentElement) positions.push([at, at.scrollLeft, at.scrollTop]);
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const lists = [...document.querySelectorAll(".suggestion-list")].filter((list) => !list.contains(element));
  for (const list of lists) list.style.visibility = "hidden";
  const { violations } = await axe.run(element, { runOnly: [rule], resultTypes: ["violations"] });
  for (const list of lists) list.style.visibility = "";
  for (const [at, left, top] of positions) at.scrollTo({ left, top, behavior: "instant" });
  return violations.length > 0;
}"""
"""Runs in a page with axe-core. Returns whether a target is too small in the middle of all that scrolls around it."""


_RUN = """async (options) => {
  const { violations } = await axe.run(options);
  return violations.map(({ id, impact, nodes }) => [id, impact, nodes.map(({ target }) => target.flat().join(" "))]);
}"""


def violations_of(page: Page, *, only: Sequence[str] = ()) -> list[str]:
    """Return what axe-core finds: the rule, and the first elements that break it. only: the rules that run.

    A small link needs room around it. Where the edge of the window or a bar that stays in place takes that room,
    scrolling gives it back: targets are too small only if they are so after being scrolled into the middle. Those that
    a list of suggestions covers are no targets until it closes.
    """
    options = {**_OPTIONS, "rules": {}, "runOnly": [*only]} if only else _OPTIONS
    found = []
    # Half a megabyte: once for each document.
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_SCRIPT)
    for rule, impact, targets in page.evaluate(_RUN, options):
        wrong = (target for target in targets if rule != _TARGET_SIZE or page.evaluate(_IS_TOO_SMALL, [target, rule]))
        if shown := [*islice(wrong, MAX_NODES)]:
            found.append(f"{rule} ({impact}): {'; '.join(shown)}")
    return found
