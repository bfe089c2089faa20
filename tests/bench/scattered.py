"""A purge of a user's messages in a thousand buckets."""

from __future__ import annotations

import statistics

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.lifecycle import draft_purge
from tests.bench import baseline
from tests.bench.bench_stack import seconds_of_purge, seconds_of_undo
from tests.bench.channel_pool import ChannelPool
from tests.bench.channels import settle
from tests.bench.report import Figures
from tests.bench.timing import alternate, seconds_of


def preview_of(moderator: User, author: int) -> tuple[Purge, float]:
    """Preview a purge of an author's messages; also return the seconds of the scan."""
    purge = draft_purge(moderator=moderator, selection=Selection(where=Author((author,))))
    taken = seconds_of(lambda: scan_to_end(purge.pk))
    purge.refresh_from_db()
    return purge, taken


def measure_scattered(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield the ratios of a purge of 20 messages in each of 1,000 buckets, of its preview and of its undo.

    The baselines delete and insert the same number of messages in the same buckets, a batch per bucket, and read the
    same buckets, 16 in flight. The purge includes quarantine and verification, from the confirmation on.
    """
    moderator, scattered = pool.moderator, pool.scattered
    settle()
    previews: list[float] = []
    undos: list[float] = []
    inserts: list[float] = []

    def ours() -> float:
        purge, taken = preview_of(moderator, scattered.purged)
        previews.append(taken)
        taken = seconds_of_purge(moderator, purge)
        undos.append(seconds_of_undo(moderator, purge))
        return taken

    def theirs() -> float:
        taken = seconds_of(scattered.delete_rows)
        inserts.append(seconds_of(scattered.insert_again))
        return taken

    # The first preview counts the tombstones of every bucket; both sides warm up.
    ours()
    theirs()
    for taken in (previews, undos, inserts):
        taken.clear()
    sides = alternate(ours, theirs, runs=runs)
    yield "scattered_vs_row_deletes", sides.speed
    yield "scattered_messages_per_second", scattered.messages / sides.ours
    yield "scattered_undo_vs_insert", statistics.median(inserts) / statistics.median(undos)
    yield "scattered_undo_messages_per_second", scattered.messages / statistics.median(undos)
    scans = [seconds_of(lambda: baseline.scan_buckets(scattered.ids)) for _ in range(runs)]
    yield "scattered_preview_vs_scan", statistics.median(scans) / statistics.median(previews)
