"""`python -m tests.bench.table bench.json`: print the table of docs/benchmarks.md for the figures of a bench."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.report import BOUNDS, holds

ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "A purge, quarantined and verified, against bare row deletes with neither",
        "{} × the speed",
        "purge_vs_row_deletes",
    ),
    (
        "The same against the engine's `Model.objects.filter(…).delete()` for each of 5,000 messages",
        "{} × the speed",
        "purge_vs_model_deletes",
    ),
    (
        "The same against the 100 messages per second that Discord's API allows",
        "{} × the speed",
        "purge_vs_discord_limit",
    ),
    (
        "A purge of 20 messages in each of 1,000 buckets, against bare row deletes",
        "{} × the speed",
        "scattered_vs_row_deletes",
    ),
    ("Its undo, against bare inserts", "{} × the speed", "scattered_undo_vs_insert"),
    ("Its preview, against a bare scan of the same buckets", "{} × the speed", "scattered_preview_vs_scan"),
    ("Ten messages selected on a page, until the preview is shown", "{} s", "small_preview_seconds"),
    ("The same, from the confirmation until they are gone from the page", "{} s", "small_purge_seconds"),
    (
        "The same while a large purge and a preview of a guild run (p95)",
        "{} s",
        "small_purge_beside_p95_seconds",
    ),
    (
        "20 moderators who delete 50 messages each at the same time, beside a large purge, until all have ended",
        "{} s",
        "twenty_moderators_seconds",
    ),
    ("The large purge beside them, against one alone", "{} × the time", "twenty_moderators_slowdown"),
    (
        "A raid of 30,000 messages among live talk in three channels, until every page is clean",
        "{} s",
        "raid_clean_seconds",
    ),
    (
        "Newest page of the purged channel, against an untouched one (300 pages)",
        "{} × the time",
        "page_after_purge",
    ),
    ("Tombstones scanned by that page", "{}", "tombstones_after_purge"),
    (
        "Newest page of a channel of 180 buckets, 178 of them emptied, against the same without the ledger",
        "{} × the time",
        "emptied_page_vs_ignored",
    ),
    ("Undo, against bare inserts", "{} × the speed", "undo_vs_insert"),
    (
        "A purge that keeps every second message, against row deletes",
        "{} × the speed",
        "rewrite_vs_row_deletes",
    ),
    (
        "p95 of a page while a purge runs, against idle right before (five runs)",
        "{} × the time",
        "foreground_p95",
    ),
    ("A page of 50, against the bare statement (300 pages)", "{} × the time", "page_vs_statement"),
    ("Scan and preview by author and time, against a bare scan", "{} × the speed", "preview_vs_scan"),
    ("Import, against bare inserts", "{} × the speed", "import_vs_insert"),
    ("Import of files of 60 messages, against one large channel", "{} × the speed", "small_files_vs_large"),
    (
        "Purges and linking their entries of the audit log to its hash chain, against the purges alone (five pairs)",
        "{} × the processor time",
        "purge_with_audit_chain",
    ),
)
"""A line of the table: the thing measured, the format of its figure, and the figure's name."""


def table_of(figures: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of the table; a figure that was not measured has no line."""
    yield "| Measured | Result | Bound |"
    yield "| --- | --- | --- |"
    for measured, result, key in ROWS:
        if key in figures:
            yield f"| {measured} | {result.format(format_figure(figures[key]))} | {format_bound(key, figures[key])} |"


def format_figure(value: float) -> str:
    """Return a figure with three digits, or as an integer from a hundred on."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def format_bound(key: str, value: float) -> str:
    """Return the bound of a figure, and whether it was missed."""
    if key not in BOUNDS:
        return ""
    word, bound = BOUNDS[key]
    return f"{word} {bound:g}" + ("" if holds(key, value) else ": missed")


if __name__ == "__main__":
    print("\n".join(table_of(json.loads(Path(sys.argv[1]).read_text()))))
