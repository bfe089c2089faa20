"""Page reads: compared with the bare statement, and during a purge."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

from chatstore.domain.buckets import bucket_of
from chatstore.models.users import User
from chatstore.store.messages import COLUMNS
from chatstore.store.reading.reader import read_page
from moderation.domain.states import PurgeState
from moderation.models import Purge
from tests.bench import baseline
from tests.bench.bench_stack import begin_purge, is_busy, wait_for
from tests.bench.channel_pool import ChannelPool, scan
from tests.bench.channels import Filled, settle
from tests.bench.report import Figures
from tests.bench.timing import alternate, seconds_of
from tests.moderation.channels import choose

PAGES = 300
STATEMENT = f"SELECT {', '.join(COLUMNS)} FROM messages WHERE channel_id = ? AND bucket = ? LIMIT 50"
THINK_SECONDS = 0.005
"""Pause between two pages of the foreground reader, for 100-200 pages per second."""

IDLE_SECONDS = 4.0

BUSY_SECONDS = 20.0
"""Duration of the purge: 2,000 pages and more. While pages are read, a million messages take minutes."""


def measure_pages(pool: ChannelPool) -> Figures:
    """Yield page_vs_statement: the newest page of 50, compared with the bare statement on the newest bucket."""
    filled = pool.small
    settle()
    newest = bucket_of(filled.ids[-1])
    session, statement = baseline.bare_session(), baseline.prepared(STATEMENT)

    def theirs() -> float:
        return seconds_of(lambda: list(session.execute(statement, (filled.channel.id, newest))))

    def ours() -> float:
        return seconds_of(lambda: read_page(filled.channel.id))

    alternate(ours, theirs, runs=30)
    sides = alternate(ours, theirs, runs=PAGES)
    yield "page_vs_statement", sides.time
    yield "page_milliseconds", sides.ours * 1_000


def measure_foreground(pool: ChannelPool, *, runs: int) -> Figures:
    """Yield foreground_p95: a page's p95 during a purge of another channel at the default limit, compared with idle.

    The idle time is measured right before, when the channel is filled and scanned and no node compacts.
    """
    reader = pool.small
    pool.prepare_busy(runs)
    idle, busy = [], []
    for _ in range(runs):
        settle()
        purge = scan(pool.moderator, choose(pool.take_busy().channel.id, everything=True))
        idle.append(p95_while(reader, for_seconds(IDLE_SECONDS)))
        busy.append(p95_during_purge(pool.moderator, reader, purge))
    yield "foreground_p95", statistics.median(busy) / statistics.median(idle)


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Return a function that is true until the given seconds have passed."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until


def p95_while(reader: Filled, keep_reading: Callable[[], bool]) -> float:
    """Read pages one after the other while `keep_reading` is true; return the 95th percentile of their seconds."""
    taken = []
    for count in itertools.count():
        if count % 10 == 0 and not keep_reading():
            break
        taken.append(seconds_of(lambda: read_page(reader.channel.id)))
        time.sleep(THINK_SECONDS)
    return statistics.quantiles(taken, n=20)[-1]


def p95_during_purge(moderator: User, reader: Filled, purge: Purge) -> float:
    """Return the p95 of pages while the worker purges the other channel."""
    begin_purge(moderator, purge)
    in_time = for_seconds(BUSY_SECONDS)
    try:
        return p95_while(reader, lambda: in_time() and is_busy(purge))
    finally:
        # The reader has stopped, so the rest of the purge is not throttled.
        wait_for(purge, PurgeState.DONE)
