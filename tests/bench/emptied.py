"""Newest page of a channel whose buckets are mostly emptied by purges: with its ledger, and with an unknown ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.test import override_settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import ledger
from chatstore.store.reading.reader import read_page, trace_newest_page
from tests.bench import baseline
from tests.bench.bench_stack import seconds_of_purge
from tests.bench.channel_pool import scan
from tests.bench.channels import empty_channel, rows_of
from tests.bench.report import Figures
from tests.bench.timing import alternate, seconds_of
from tests.moderation.channels import choose

BUCKETS = 180
"""Five years of a channel."""

MESSAGES_PER_BUCKET_ = 500

KEPT_PER_END = 20
"""Messages kept in the newest and in the oldest bucket, so that a page of 50 has to pass all empty ones."""

PAGES = 30
BENCH_DEADLINE_SECONDS = 60.0
"""Without a higher deadline the page without a ledger would be cut short and could not be compared."""


LedgerRows = Mapping[int, tuple[int | None, int | None, int | None]]
"""(first, last, count) of the live messages in each bucket."""

UNKNOWN_BOUNDS = (None, None, None)
SET_LIVE = "INSERT INTO bucket_ledger (channel_id, bucket, live) VALUES (?, ?, ?)"


def measure_emptied(moderator: User) -> Figures:
    """Yield emptied_page_vs_ignored for 180 buckets of which 178 are empty, and both sides' milliseconds and
    statements.

    Both sides read the same channel. Its ledger is written before each page: as the purge left it, or with unknown
    bounds.
    """
    channel = make_emptied(moderator)
    known = {bucket: live.as_tuple() for bucket, live in ledger.read_ledger(channel.pk)}
    ignored = dict.fromkeys(known, UNKNOWN_BOUNDS)
    ours, theirs = page_time(channel, known), page_time(channel, ignored)
    with override_settings(PAGE_DEADLINE_SECONDS=BENCH_DEADLINE_SECONDS):
        alternate(ours, theirs, runs=2)
        sides = alternate(ours, theirs, runs=PAGES)
        write_ledger(channel, known)
        with_ledger = trace_newest_page(channel.pk)
        write_ledger(channel, ignored)
        without = trace_newest_page(channel.pk)
    yield "emptied_page_vs_ignored", sides.time
    yield "emptied_page_milliseconds", sides.ours * 1_000
    yield "ignored_page_milliseconds", sides.theirs * 1_000
    yield "emptied_page_statements", with_ledger.statements
    yield "ignored_page_statements", without.statements


def make_emptied(moderator: User) -> Channel:
    """Create a channel in which a purge deleted all but a few messages of the first and of the last bucket."""
    channel = empty_channel()
    newest = bucket_at(postgres_now_us() // 1_000) - 1
    oldest = newest - BUCKETS + 1
    ids = [one for bucket in range(oldest, newest + 1) for one in ids_of(bucket)]
    for bucket in range(oldest, newest + 1):
        ledger.ensure_row(channel.pk, bucket)
    baseline.run_batches(baseline.INSERT, rows_of(channel.pk, ids))
    seconds_of_purge(
        moderator, scan(moderator, choose(channel.pk, after_id=ids[KEPT_PER_END], before_id=ids[-KEPT_PER_END]))
    )
    return channel


def ids_of(bucket: int) -> list[int]:
    """Return ids spread over a bucket, ascending."""
    first, last = bucket_ids(bucket)
    step = (last - first) // MESSAGES_PER_BUCKET_
    return [first + step * number + 7 for number in range(MESSAGES_PER_BUCKET_)]


def page_time(channel: Channel, rows: LedgerRows) -> Callable[[], float]:
    """Return a function that writes the ledger `rows` and returns the seconds of the newest page."""

    def run_once() -> float:
        write_ledger(channel, rows)
        return seconds_of(lambda: read_page(channel.pk))

    return run_once


def write_ledger(channel: Channel, rows: LedgerRows) -> None:
    """Overwrite the channel's ledger with current timestamps and clear the page cache."""
    baseline.run_batches(SET_LIVE, ((channel.pk, bucket, live) for bucket, live in rows.items()))
    ledger.expire_cache(channel.pk)
