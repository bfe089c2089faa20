"""`python -m tests.bench --size 1000000 --out bench.json`, on the test servers."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import django

BOUNDS: dict[str, tuple[str, float]] = {
    "purge_vs_row_deletes": ("at least", 1.3),
    "rewrite_vs_row_deletes": ("at least", 0.2),
    "page_after_purge": ("at most", 1.5),
    "tombstones_after_purge": ("at most", 500),
    "undo_vs_insert": ("at least", 0.7),
    "preview_vs_scan": ("at least", 0.6),
    "page_vs_statement": ("at most", 1.6),
    "import_vs_insert": ("at least", 0.5),
    "foreground_p95": ("at most", 2.0),
}
"""What the design asks of each ratio."""


WARM_UP = 200_000
"""Messages of a first round that is not counted: for a minute the servers' compilers take up to half of both cores."""

PARTS = ("pages", "emptied", "preview", "purge", "rewrite", "undo", "import", "foreground")
"""What --only may name."""


def main() -> None:
    """Measures everything, prints the ratios beside their bounds, writes them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--runs", type=int, default=3, help="alternating runs of each side")
    parser.add_argument("--only", nargs="*", choices=PARTS)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    measured = measure(options.size, runs=options.runs, only=options.only)
    options.out.write_text(json.dumps(measured, indent=2) + "\n")
    print(f"written to {options.out}")


def measure(size: int, *, runs: int, only: list[str] | None) -> dict[str, object]:
    """Every measurement that was asked for, told as it comes."""
    # Models can be imported only after django.setup().
    from moderation.management.commands.purge import find_moderator  # noqa: PLC0415
    from tests.bench import conditions, crew, emptied, importing, purging, reading  # noqa: PLC0415

    moderator = find_moderator(None)
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "pages": reading.measure_pages,
        "emptied": lambda: emptied.measure_emptied(moderator),
        "preview": lambda: purging.measure_preview(moderator, size, runs=runs),
        "purge": lambda: purging.measure_purges(moderator, size, runs=runs),
        "rewrite": lambda: purging.measure_rewrites(moderator, size, runs=runs),
        "undo": lambda: purging.measure_undos(moderator, size, runs=runs),
        "import": lambda: importing.measure_import(size, runs=runs),
        "foreground": lambda: reading.measure_foreground(moderator, size, runs=5),
    }
    measured: dict[str, object] = {"size": size, "conditions": conditions.describe_conditions()}
    print(json.dumps(measured, indent=2))
    with crew.crew():
        purging.measure_rewrites(moderator, WARM_UP, runs=1)
        purging.measure_undos(moderator, WARM_UP, runs=1)
        for name, act in parts.items():
            if not only or name in only:
                figures = {key: round(value, 3) for key, value in act().items()}
                measured |= figures
                for key, value in figures.items():
                    print(f"{key:28}{value:>14,}   {tell_bound(key, value)}", flush=True)
    return measured


def tell_bound(key: str, value: float) -> str:
    """The bound of a ratio in words, and whether it holds."""
    if key not in BOUNDS:
        return ""
    word, bound = BOUNDS[key]
    holds = value >= bound if word == "at least" else value <= bound
    return f"{word} {bound:g}: {'holds' if holds else 'MISSED'}"


if __name__ == "__main__":
    main()
