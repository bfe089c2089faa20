"""What a purge costs, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.models.cassandra import MessageRow
from chatstore.store.reader import read_page, trace_newest_page
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.purges import draft_purge
from moderation.operations.scanning import scan_purge
from tests.bench import rivals
from tests.bench.channels import AUTHORS, Filled, empty_channel, fill_channel, rows_of, spread_ids
from tests.bench.crew import seconds_of_purge, seconds_of_undo
from tests.bench.rounds import alternate, seconds_of
from tests.moderation.rooms import choose

PAGES, WARM_PAGES = 300, 30
"""Pages of which the median is taken, after some that are not counted."""

MODEL_DELETES = 5_000
"""Enough for a rate: a million would take twenty minutes."""

DISCORD_PER_SECOND = 100
"""Discord's API deletes up to 100 messages a call, of the last 14 days, at about a call a second."""


def scan(moderator: User, selection: Selection) -> Purge:
    """A scanned purge of the selection."""
    purge = draft_purge(moderator=moderator, selection=selection)
    scan_purge(purge.id)
    purge.refresh_from_db()
    return purge


def all_but_oldest(filled: Filled) -> Selection:
    """Everything but the channel's oldest message."""
    return choose(filled.channel.id, after_id=filled.ids[1])


def every_second(filled: Filled) -> Selection:
    """Every second message: the authors come in turn, and half of them are chosen."""
    return choose(filled.channel.id, author_ids=tuple(range(1, AUTHORS + 1, 2)))


def seconds_of_row_deletes(filled: Filled, ids: Sequence[int]) -> float:
    """The same ids by a bare loop of batched row deletes."""
    keys = ((filled.channel.id, bucket_of(message_id), message_id) for message_id in ids)
    return seconds_of(lambda: rivals.run_batches(rivals.DELETE_ROW, keys))


def measure_purges(moderator: User, size: int, *, runs: int) -> dict[str, float]:
    """purge_vs_row_deletes, page_after_purge, tombstones_after_purge."""
    purged: list[Filled] = []

    def ours() -> float:
        purged.append(fill_channel(size))
        return seconds_of_purge(moderator, scan(moderator, all_but_oldest(purged[-1])))

    def theirs() -> float:
        filled = fill_channel(size)
        return seconds_of_row_deletes(filled, filled.ids[1:])

    sides = alternate(ours, theirs, runs=runs)
    # Right after the last purge: no flush, no compaction.
    untouched, last = fill_channel(size), purged[-1]
    alternate(page_time(last), page_time(untouched), runs=WARM_PAGES)
    pages = alternate(page_time(last), page_time(untouched), runs=PAGES)
    speed, by_model = size / sides.ours, rate_of_model_deletes()
    return {
        "purge_vs_row_deletes": sides.speed,
        "purge_messages_per_second": speed,
        "row_deletes_per_second": size / sides.theirs,
        "model_deletes_per_second": by_model,
        "purge_vs_model_deletes": speed / by_model,
        "purge_vs_discord_limit": speed / DISCORD_PER_SECOND,
        "page_after_purge": pages.time,
        "tombstones_after_purge": trace_newest_page(last.channel.id).tombstones,
    }


def rate_of_model_deletes() -> float:
    """Messages a second by `Model.objects.filter(…).delete()` of the engine, one after the other."""
    filled = fill_channel(MODEL_DELETES)
    doomed = MessageRow.objects.filter(channel_id=filled.channel.id)

    def act() -> None:
        for message_id in filled.ids:
            doomed.filter(bucket=bucket_of(message_id), message_id=message_id).delete()

    return MODEL_DELETES / seconds_of(act)


def measure_rewrites(moderator: User, size: int, *, runs: int) -> dict[str, float]:
    """rewrite_vs_row_deletes: every second message goes, and the others are written again where they must."""

    def ours() -> float:
        return seconds_of_purge(moderator, scan(moderator, every_second(fill_channel(size))))

    def theirs() -> float:
        filled = fill_channel(size)
        return seconds_of_row_deletes(filled, filled.ids[::2])

    sides = alternate(ours, theirs, runs=runs)
    return {"rewrite_vs_row_deletes": sides.speed, "rewrite_messages_per_second": size / 2 / sides.ours}


def measure_undos(moderator: User, size: int, *, runs: int) -> dict[str, float]:
    """undo_vs_insert: taking a purge back, against bare batched inserts of the same rows."""

    def ours() -> float:
        purge = scan(moderator, all_but_oldest(fill_channel(size)))
        seconds_of_purge(moderator, purge)
        return seconds_of_undo(moderator, purge)

    def theirs() -> float:
        rows = list(rows_of(empty_channel().id, spread_ids(size)))
        return seconds_of(lambda: rivals.run_batches(rivals.INSERT, rows))

    sides = alternate(ours, theirs, runs=runs)
    return {"undo_vs_insert": sides.speed, "undo_messages_per_second": size / sides.ours}


def page_time(filled: Filled) -> Callable[[], float]:
    """Reads a channel's newest page; the seconds it took."""
    return lambda: seconds_of(lambda: read_page(filled.channel.id))


def measure_preview(moderator: User, size: int, *, runs: int) -> dict[str, float]:
    """preview_vs_scan: scan, filter by author and time, freeze; against a bare scan of both columns."""
    filled = fill_channel(size)

    def ours() -> float:
        selection = choose(
            filled.channel.id,
            author_ids=(1, 2, 3),
            after_id=filled.ids[0],
            before_id=filled.ids[-1],
        )
        purge = draft_purge(moderator=moderator, selection=selection)
        return seconds_of(lambda: scan_purge(purge.id))

    def theirs() -> float:
        return seconds_of(lambda: [rivals.scan_bucket(filled.channel.id, bucket) for bucket in filled.buckets])

    sides = alternate(ours, theirs, runs=runs)
    return {"preview_vs_scan": sides.speed, "preview_messages_per_second": size / sides.ours}
