"""The cost of a purge and the tombstones it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chatstore.domain.buckets import bucket_of
from chatstore.models.cassandra import MessageRow
from chatstore.store.reading.reader import read_page, trace_newest_page
from moderation.domain.selection import Selection
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.bench import rivals
from tests.bench.channels import AUTHORS, Filled, fill_channel, insert_channel, settle
from tests.bench.crew import seconds_of_purge, seconds_of_undo
from tests.bench.report import Figures
from tests.bench.rounds import alternate, seconds_of
from tests.bench.stock import Stock, scan
from tests.moderation.rooms import choose

PAGES, WARM_PAGES = 300, 30
"""Pages of which the median is taken, and preceding warm-up pages."""

MODEL_DELETES = 5_000
"""Enough for a rate; a million would take twenty minutes."""

DISCORD_PER_SECOND = 100
"""Discord's API deletes up to 100 messages per call, of the last 14 days, at about one call per second."""


def every_second(filled: Filled) -> Selection:
    """Return a selection of every second message: authors alternate, and half of them are selected."""
    return choose(filled.channel.id, author_ids=tuple(range(1, AUTHORS + 1, 2)))


def seconds_of_row_deletes(filled: Filled, ids: Sequence[int]) -> float:
    """Delete the same ids in a bare loop of batched row deletes and return the seconds."""
    keys = ((filled.channel.id, bucket_of(message_id), message_id) for message_id in ids)
    return seconds_of(lambda: rivals.run_batches(rivals.DELETE_ROW, keys))


def measure_purges(stock: Stock, *, runs: int) -> Figures:
    """Yield purge_vs_row_deletes, page_after_purge and tombstones_after_purge; each side uses a fresh channel.

    Pages are compared right after the last purge, before anything is flushed or compacted.
    """
    doomed = fill_channel(MODEL_DELETES)
    stock.prepare_fresh(2 * runs + 1)
    after: list[tuple[float, int]] = []

    def ours() -> float:
        taken = stock.purge_fresh()
        if len(stock.purged) == runs:
            last, _ = stock.purged[-1]
            tombstones = trace_newest_page(last.channel.id).tombstones
            after.append((compare_pages(last, stock.untouched), tombstones))
        return taken

    def theirs() -> float:
        filled = stock.fresh.pop(0)
        return seconds_of_row_deletes(filled, filled.ids[1:])

    sides = alternate(ours, theirs, runs=runs, before=settle)
    speed = stock.size / sides.ours
    yield "purge_vs_row_deletes", sides.speed
    yield "purge_messages_per_second", speed
    yield "row_deletes_per_second", stock.size / sides.theirs
    yield "purge_vs_discord_limit", speed / DISCORD_PER_SECOND
    (page, tombstones), *_ = after
    yield "page_after_purge", page
    yield "tombstones_after_purge", tombstones
    settle()
    by_model = rate_of_model_deletes(doomed)
    yield "model_deletes_per_second", by_model
    yield "purge_vs_model_deletes", speed / by_model


def compare_pages(purged: Filled, untouched: Filled) -> float:
    """Return the duration of the purged channel's newest page as a multiple of the untouched one's."""
    alternate(page_time(purged), page_time(untouched), runs=WARM_PAGES)
    return alternate(page_time(purged), page_time(untouched), runs=PAGES).time


def rate_of_model_deletes(filled: Filled) -> float:
    """Return the messages per second of one `Model.objects.filter(…).delete()` after another."""
    rows = MessageRow.objects.filter(channel_id=filled.channel.id)

    def act() -> None:
        for message_id in filled.ids:
            rows.filter(bucket=bucket_of(message_id), message_id=message_id).delete()

    return len(filled.ids) / seconds_of(act)


def measure_rewrites(stock: Stock, *, runs: int) -> Figures:
    """Yield rewrite_vs_row_deletes: every second message is deleted, the others are rewritten where necessary.

    The purge uses fresh channels, the baseline undone ones: a row delete reads nothing.
    """
    stock.prepare_deletable(runs)
    stock.prepare_fresh(runs)

    def ours() -> float:
        return seconds_of_purge(stock.moderator, scan(stock.moderator, every_second(stock.fresh.pop(0))))

    def theirs() -> float:
        filled = stock.undone.pop(0)
        return seconds_of_row_deletes(filled, filled.ids[::2])

    sides = alternate(ours, theirs, runs=runs, before=settle)
    yield "rewrite_vs_row_deletes", sides.speed
    yield "rewrite_messages_per_second", stock.size / 2 / sides.ours


def measure_undos(stock: Stock, *, runs: int) -> Figures:
    """Yield undo_vs_insert: an undo, compared with bare batched inserts of the same rows.

    The quarantined rows are flushed by then, as for any undo that is not requested at once.
    """
    stock.prepare_purged(runs)

    def ours() -> float:
        filled, purge = stock.purged.pop(0)
        taken = seconds_of_undo(stock.moderator, purge)
        stock.undone.append(filled)
        return taken

    def theirs() -> float:
        filled, taken = insert_channel(stock.size)
        stock.fresh.append(filled)
        return taken

    sides = alternate(ours, theirs, runs=runs, before=settle)
    yield "undo_vs_insert", sides.speed
    yield "undo_messages_per_second", stock.size / sides.ours


def page_time(filled: Filled) -> Callable[[], float]:
    """Return a function that reads the channel's newest page and returns the seconds it took."""
    return lambda: seconds_of(lambda: read_page(filled.channel.id))


def measure_preview(stock: Stock, *, runs: int) -> Figures:
    """Yield preview_vs_scan: scan, filter by author and time, freeze; compared with a bare scan of both columns.

    Both sides read the same channel and write nothing to Cassandra.
    """
    filled = stock.untouched
    settle()

    def ours() -> float:
        selection = choose(
            filled.channel.id,
            author_ids=(1, 2, 3),
            after_id=filled.ids[0],
            before_id=filled.ids[-1],
        )
        purge = draft_purge(moderator=stock.moderator, selection=selection)
        return seconds_of(lambda: scan_purge(purge.id))

    def theirs() -> float:
        return seconds_of(lambda: [rivals.scan_bucket(filled.channel.id, bucket) for bucket in filled.buckets])

    sides = alternate(ours, theirs, runs=runs)
    yield "preview_vs_scan", sides.speed
    yield "preview_messages_per_second", stock.size / sides.ours
