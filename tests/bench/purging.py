"""The cost of a purge and the tombstones it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chatstore.domain.buckets import bucket_of
from chatstore.models.cassandra import MessageRow
from chatstore.store.reading.reader import read_page, trace_newest_page
from moderation.domain.selection import Selection
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.lifecycle import draft_purge
from tests.bench import baseline
from tests.bench.bench_stack import seconds_of_purge, seconds_of_undo
from tests.bench.channel_pool import ChannelPool, scan
from tests.bench.channels import AUTHORS, Filled, fill_channel, insert_channel, settle
from tests.bench.report import Figures
from tests.bench.timing import alternate, seconds_of
from tests.moderation.channels import choose

PAGES, WARM_PAGES = 300, 30
"""Pages of which the median is taken, and preceding warm-up pages."""

MODEL_DELETES = 5_000
"""Enough for a rate; a million would take twenty minutes."""

DISCORD_DELETES_PER_SECOND = 100
"""Discord's API deletes up to 100 messages per call, of the last 14 days, at about one call per second."""


def every_second(filled: Filled) -> Selection:
    """Return a selection of every second message: authors alternate, and half of them are selected."""
    return choose(filled.channel.id, author_ids=tuple(range(1, AUTHORS + 1, 2)))


def seconds_of_row_deletes(filled: Filled, ids: Sequence[int]) -> float:
    """Delete the same ids in a bare loop of batched row deletes and return the seconds."""
    keys = ((filled.channel.id, bucket_of(message_id), message_id) for message_id in ids)
    return seconds_of(lambda: baseline.run_batches(baseline.DELETE_ROW, keys))


def measure_purges(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield purge_vs_row_deletes, page_after_purge and tombstones_after_purge; each side uses a fresh channel.

    Pages are compared right after the last purge, before anything is flushed or compacted.
    """
    model_channel = fill_channel(MODEL_DELETES)
    pool.prepare_fresh(2 * runs + 1)
    after: list[tuple[float, int]] = []

    def ours() -> float:
        taken = pool.purge_fresh()
        if len(pool.purged) == runs:
            last, _ = pool.purged[-1]
            tombstones = trace_newest_page(last.channel.id).tombstones
            after.append((compare_pages(last, pool.untouched), tombstones))
        return taken

    def theirs() -> float:
        filled = pool.fresh.pop(0)
        return seconds_of_row_deletes(filled, filled.ids[1:])

    sides = alternate(ours, theirs, runs=runs, before=settle)
    speed = pool.size / sides.ours
    yield "purge_vs_row_deletes", sides.speed
    yield "purge_messages_per_second", speed
    yield "row_deletes_per_second", pool.size / sides.theirs
    yield "purge_vs_discord_limit", speed / DISCORD_DELETES_PER_SECOND
    (page, tombstones), *_ = after
    yield "page_after_purge", page
    yield "tombstones_after_purge", tombstones
    settle()
    by_model = rate_of_model_deletes(model_channel)
    yield "model_deletes_per_second", by_model
    yield "purge_vs_model_deletes", speed / by_model


def compare_pages(purged: Filled, untouched: Filled) -> float:
    """Return the duration of the purged channel's newest page as a multiple of the untouched one's."""
    alternate(page_time(purged), page_time(untouched), runs=WARM_PAGES)
    return alternate(page_time(purged), page_time(untouched), runs=PAGES).time


def rate_of_model_deletes(filled: Filled) -> float:
    """Return the messages per second of one `Model.objects.filter(…).delete()` after another."""
    rows = MessageRow.objects.filter(channel_id=filled.channel.id)

    def run_once() -> None:
        for message_id in filled.ids:
            rows.filter(bucket=bucket_of(message_id), message_id=message_id).delete()

    return len(filled.ids) / seconds_of(run_once)


def measure_rewrites(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield rewrite_vs_row_deletes: every second message is deleted, the others are rewritten where necessary.

    The purge uses fresh channels, the baseline undone ones: a row delete reads nothing.
    """
    pool.prepare_deletable(runs)
    pool.prepare_fresh(runs)

    def ours() -> float:
        return seconds_of_purge(pool.moderator, scan(pool.moderator, every_second(pool.fresh.pop(0))))

    def theirs() -> float:
        filled = pool.undone.pop(0)
        return seconds_of_row_deletes(filled, filled.ids[::2])

    sides = alternate(ours, theirs, runs=runs, before=settle)
    yield "rewrite_vs_row_deletes", sides.speed
    yield "rewrite_messages_per_second", pool.size / 2 / sides.ours


def measure_undos(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield undo_vs_insert: an undo, compared with bare batched inserts of the same rows.

    The quarantined rows are flushed by then, as for any undo that is not requested at once.
    """
    pool.prepare_purged(runs)

    def ours() -> float:
        filled, purge = pool.purged.pop(0)
        taken = seconds_of_undo(pool.moderator, purge)
        pool.undone.append(filled)
        return taken

    def theirs() -> float:
        filled, taken = insert_channel(pool.size)
        pool.fresh.append(filled)
        return taken

    sides = alternate(ours, theirs, runs=runs, before=settle)
    yield "undo_vs_insert", sides.speed
    yield "undo_messages_per_second", pool.size / sides.ours


def page_time(filled: Filled) -> Callable[[], float]:
    """Return a function that reads the channel's newest page and returns the seconds it took."""
    return lambda: seconds_of(lambda: read_page(filled.channel.id))


def measure_preview(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield preview_vs_scan: scan, filter by author and time, freeze; compared with a bare scan of both columns.

    Both sides read the same channel and write nothing to Cassandra.
    """
    filled = pool.untouched
    settle()

    def ours() -> float:
        selection = choose(
            filled.channel.id,
            author_ids=(1, 2, 3),
            after_id=filled.ids[0],
            before_id=filled.ids[-1],
        )
        purge = draft_purge(moderator=pool.moderator, selection=selection)
        return seconds_of(lambda: scan_to_end(purge.id))

    def theirs() -> float:
        return seconds_of(lambda: [baseline.scan_bucket(filled.channel.id, bucket) for bucket in filled.buckets])

    sides = alternate(ours, theirs, runs=runs)
    yield "preview_vs_scan", sides.speed
    yield "preview_messages_per_second", pool.size / sides.ours
