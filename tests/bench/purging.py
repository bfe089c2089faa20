"""What a purge costs, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.store.reader import read_page, trace_newest_page
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purges import confirm_purge, draft_purge
from moderation.operations.running import run_purge
from moderation.operations.scanning import scan_purge
from tests.bench import rivals
from tests.bench.channels import Filled, fill_channel
from tests.bench.rounds import alternate, seconds_of

PAGES = 60
"""Pages of which the median is taken."""


def preview_all_but_oldest(moderator: User, filled: Filled) -> Purge:
    """A scanned purge of everything but the channel's oldest message."""
    selection = Selection(channel_id=filled.channel.id, after_id=filled.ids[1])
    purge = draft_purge(moderator=moderator, selection=selection)
    scan_purge(purge.id)
    purge.refresh_from_db()
    return purge


def seconds_of_purge(moderator: User, filled: Filled) -> float:
    """From confirming to verified, the quarantine included."""
    purge = preview_all_but_oldest(moderator, filled)

    def act() -> None:
        confirm_purge(purge.id, moderator=moderator, reason="bench", digest=bytes(purge.digest or b""))
        ended = run_purge(purge.id)
        if ended.state != PurgeState.DONE:
            raise RuntimeError(f"the purge is {ended.state}: {ended.wait_reason}")

    return seconds_of(act)


def seconds_of_row_deletes(filled: Filled) -> float:
    """The same ids by a bare loop of batched row deletes."""
    keys = ((filled.channel.id, bucket_of(message_id), message_id) for message_id in filled.ids[1:])
    return seconds_of(lambda: rivals.run_batches(rivals.DELETE_ROW, keys))


def measure_purges(moderator: User, size: int, *, runs: int) -> dict[str, float]:
    """purge_vs_row_deletes, page_after_purge, tombstones_after_purge."""
    purged: list[Filled] = []

    def ours() -> float:
        purged.append(fill_channel(size))
        return seconds_of_purge(moderator, purged[-1])

    sides = alternate(ours, lambda: seconds_of_row_deletes(fill_channel(size)), runs=runs)
    # Right after the last purge: no flush, no compaction.
    untouched, last = fill_channel(size), purged[-1]
    pages = alternate(page_time(last), page_time(untouched), runs=PAGES)
    return {
        "purge_vs_row_deletes": sides.speed,
        "purge_messages_per_second": size / sides.ours,
        "row_deletes_per_second": size / sides.theirs,
        "page_after_purge": pages.time,
        "tombstones_after_purge": trace_newest_page(last.channel.id).tombstones,
    }


def page_time(filled: Filled) -> Callable[[], float]:
    """Reads a channel's newest page; the seconds it took."""
    return lambda: seconds_of(lambda: read_page(filled.channel.id))


def measure_preview(moderator: User, size: int, *, runs: int) -> dict[str, float]:
    """preview_vs_scan: scan, filter by author and time, freeze; against a bare scan of both columns."""
    filled = fill_channel(size)

    def ours() -> float:
        selection = Selection(
            channel_id=filled.channel.id,
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
