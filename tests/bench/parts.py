"""The parts of the bench and the figures that each one measures."""

from __future__ import annotations

from tests.bench import audit, emptied, importing, purging, raid, reading, scattered, small, twenty
from tests.bench.channel_pool import ChannelPool
from tests.bench.report import Part


def list_parts(pool: ChannelPool, *, runs: int) -> list[Part]:
    """Return every part, in the order of `PARTS`.

    runs: per side. The foreground part runs five for every three, because a p95 is noisy.
    """
    return [
        Part(
            "purge",
            (
                "purge_vs_row_deletes",
                "purge_messages_per_second",
                "row_deletes_per_second",
                "purge_vs_discord_limit",
                "page_after_purge",
                "tombstones_after_purge",
                "model_deletes_per_second",
                "purge_vs_model_deletes",
            ),
            lambda: purging.measure_purges(pool, runs=runs),
        ),
        Part(
            "undo",
            ("undo_vs_insert", "undo_messages_per_second"),
            lambda: purging.measure_undos(pool, runs=runs),
        ),
        Part(
            "rewrite",
            ("rewrite_vs_row_deletes", "rewrite_messages_per_second"),
            lambda: purging.measure_rewrites(pool, runs=runs),
        ),
        Part(
            "pages",
            ("page_vs_statement", "page_milliseconds"),
            lambda: reading.measure_pages(pool),
        ),
        Part(
            "preview",
            ("preview_vs_scan", "preview_messages_per_second"),
            lambda: purging.measure_preview(pool, runs=runs),
        ),
        Part(
            "import",
            ("import_vs_insert", "import_messages_per_second"),
            lambda: importing.measure_import(pool, runs=runs),
        ),
        Part(
            "foreground",
            ("foreground_p95",),
            lambda: reading.measure_foreground(pool, runs=2 * runs - 1),
        ),
        Part(
            "emptied",
            (
                "emptied_page_vs_ignored",
                "emptied_page_milliseconds",
                "ignored_page_milliseconds",
                "emptied_page_statements",
                "ignored_page_statements",
            ),
            lambda: emptied.measure_emptied(pool.moderator),
        ),
        Part(
            "scattered",
            (
                "scattered_vs_row_deletes",
                "scattered_messages_per_second",
                "scattered_undo_vs_insert",
                "scattered_undo_messages_per_second",
                "scattered_preview_vs_scan",
            ),
            lambda: scattered.measure_scattered(pool, runs=runs),
        ),
        Part(
            "small",
            ("small_preview_seconds", "small_purge_seconds"),
            lambda: small.measure_small(pool.moderator),
        ),
        Part(
            "small_purge_beside",
            (
                "small_preview_beside_p95_seconds",
                "small_purge_beside_p95_seconds",
                "small_purge_beside_median_seconds",
            ),
            lambda: small.measure_small_beside(pool),
        ),
        Part(
            "twenty_moderators",
            ("twenty_moderators_confirmed_seconds", "twenty_moderators_seconds", "twenty_moderators_slowdown"),
            lambda: twenty.measure_twenty(pool, runs=runs),
        ),
        Part(
            "raid",
            ("raid_preview_seconds", "raid_clean_seconds"),
            lambda: raid.measure_raid(pool),
        ),
        Part(
            "small_files",
            ("small_files_vs_large", "small_files_messages_per_second"),
            lambda: importing.measure_small_files(pool, runs=runs),
        ),
        Part(
            "audit",
            (
                "purge_with_audit_chain",
                "audit_percent_of_dense_postgres",
                "audit_percent_of_dense_processor",
                "audit_percent_of_scattered_postgres",
                "audit_percent_of_scattered_processor",
            ),
            lambda: audit.measure_audit(pool, runs=runs),
        ),
    ]


def warm_up(pool: ChannelPool) -> None:
    """Run undo and rewrite once, with their purges and baselines: for a minute the JIT compilers use up to a core."""
    for _ in purging.measure_undos(pool, runs=1):
        pass
    for _ in purging.measure_rewrites(pool, runs=1):
        pass
