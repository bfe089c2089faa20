"""Report of a bench: each figure is printed at once, and the file is valid JSON even if the bench is interrupted.

Needs no servers: the parts are passed in.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BOUNDS: dict[str, tuple[str, float]] = {
    "purge_vs_row_deletes": ("at least", 2.0),
    "rewrite_vs_row_deletes": ("at least", 0.2),
    "page_after_purge": ("at most", 1.5),
    "tombstones_after_purge": ("at most", 500),
    "undo_vs_insert": ("at least", 0.7),
    "preview_vs_scan": ("at least", 0.6),
    "page_vs_statement": ("at most", 1.2),
    "import_vs_insert": ("at least", 0.5),
    "foreground_p95": ("at most", 2.0),
    "scattered_vs_row_deletes": ("at least", 0.25),
    "scattered_undo_vs_insert": ("at least", 0.25),
    "scattered_preview_vs_scan": ("at least", 0.4),
    "small_preview_seconds": ("at most", 0.7),
    "small_purge_seconds": ("at most", 0.6),
    "small_purge_beside_p95_seconds": ("at most", 2.0),
    "twenty_moderators_confirmed_seconds": ("at most", 1.0),
    "twenty_moderators_seconds": ("at most", 10.0),
    "twenty_moderators_slowdown": ("at most", 1.5),
    "raid_clean_seconds": ("at most", 5.0),
    "small_files_vs_large": ("at least", 0.5),
    "purge_with_audit_chain": ("at most", 1.02),
}
"""Bounds that the design sets for each ratio."""

PARTS = (
    "purge",
    "undo",
    "rewrite",
    "pages",
    "preview",
    "import",
    "foreground",
    "emptied",
    "scattered",
    "small",
    "small_purge_beside",
    "twenty_moderators",
    "raid",
    "small_files",
    "audit",
)
"""Names of the parts in execution order: an interrupted bench has the most important figures."""

Figures = Iterator[tuple[str, float]]
"""Names and values, yielded as soon as each is measured."""


@dataclass(frozen=True, slots=True)
class Part:
    """A measurement that can be selected with --only. figures: all names that `measure` yields."""

    name: str
    figures: tuple[str, ...]
    measure: Callable[[], Figures]


class Report:
    """The JSON file of one bench.

    Besides the figures it contains `seconds` of each part that ran, `failed` with the error of each part that raised,
    and `missing` with the parts that have not ended yet.
    """

    def __init__(self, out: Path, *, head: Mapping[str, object], parts: Sequence[str]) -> None:
        self.out = out
        self.head = dict(head)
        self.figures: dict[str, float] = {}
        self.seconds: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.missing = list(parts)

    def write(self) -> None:
        """Replace the file atomically: a reader never sees half of it."""
        content = self.head | self.figures
        content |= {"seconds": self.seconds, "failed": self.failed, "missing": self.missing}
        draft = self.out.with_name(f"{self.out.name}.draft")
        draft.write_text(json.dumps(content, indent=2) + "\n")
        os.replace(draft, self.out)  # noqa: PTH105 - the call that the docstring promises


def select_parts(parts: Sequence[Part], names: Collection[str]) -> list[Part]:
    """Return the named parts in their original order."""
    return [part for part in parts if part.name in names]


def run_parts(parts: Sequence[Part], report: Report, *, recover: Callable[[], object] = lambda: None) -> int:
    """Run each part, print its figures and rewrite the file after it; return the exit code.

    A part that raises is printed and recorded, `recover` is called, and the other parts still run. The exit code is 1
    if any part raised, else 0.
    """
    for part in parts:
        began = time.monotonic()
        try:
            print_figures(part, report)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other parts have figures to give
            traceback.print_exc()
            report.failed[part.name] = f"{type(error).__name__}: {error}"
            recover()
        report.missing.remove(part.name)
        report.seconds[part.name] = round(time.monotonic() - began, 1)
        report.write()
        outcome = "FAILED" if part.name in report.failed else "done"
        print(f"{part.name}: {outcome} after {report.seconds[part.name]:.0f} s", flush=True)
    return 1 if report.failed else 0


def print_figures(part: Part, report: Report) -> None:
    """Print each figure as it is measured. Raises `RuntimeError` unless the part yields exactly what it declares."""
    yielded = set()
    for key, exact in part.measure():
        yielded.add(key)
        value = report.figures[key] = round(exact, 3)
        print(f"{key:36}{value:>14,}   {describe_bound(key, value)}", flush=True)
    if yielded != set(part.figures):
        raise RuntimeError(f"declared but not measured, or the reverse: {sorted(yielded ^ set(part.figures))}")


def describe_bound(key: str, value: float) -> str:
    """Return the bound of a ratio and whether the value is within it; empty for figures without a bound."""
    if key not in BOUNDS:
        return ""
    word, bound = BOUNDS[key]
    return f"{word} {bound:g}: {'holds' if holds(key, value) else 'MISSED'}"


def holds(key: str, value: float) -> bool:
    """Return whether a figure is within its bound."""
    word, bound = BOUNDS[key]
    return value >= bound if word == "at least" else value <= bound
