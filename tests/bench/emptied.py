"""The newest page of a channel most of whose buckets purges have emptied: by the ledger, and as if it knew nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.contrib.auth.models import User
from django.test import override_settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.models import Channel
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import ledger
from chatstore.store.reading.reader import read_page, trace_newest_page
from tests.bench import rivals
from tests.bench.channels import empty_channel, rows_of
from tests.bench.crew import seconds_of_purge
from tests.bench.report import Figures
from tests.bench.rounds import alternate, seconds_of
from tests.bench.stock import scan
from tests.moderation.rooms import choose

BUCKETS = 180
"""Five years of a channel."""

MESSAGES_A_BUCKET = 500

STAY = 20
"""Messages in the newest and in the oldest bucket: a page of 50 has to look past all that are empty."""

PAGES = 30
PATIENCE_SECONDS = 60.0
"""Else the page that asks every bucket would end at its deadline, and be no page to compare with."""


LedgerRows = Mapping[int, tuple[int | None, int | None, int | None]]
"""(from, to, how many) live in each bucket."""

NOTHING_KNOWN = (None, None, None)
SET_LIVE = "INSERT INTO bucket_ledger (channel_id, bucket, live) VALUES (?, ?, ?)"


def measure_emptied(moderator: User) -> Figures:
    """emptied_page_vs_ignored: of 180 buckets 178 are empty; milliseconds and statements of both sides.

    Both read the same channel: its ledger is written before each page, as the purge left it or as if it knew nothing.
    """
    channel = make_emptied(moderator)
    known = {bucket: live.as_tuple() for bucket, live in ledger.read_ledger(channel.pk)}
    ignored = dict.fromkeys(known, NOTHING_KNOWN)
    ours, theirs = page_time(channel, known), page_time(channel, ignored)
    with override_settings(PAGE_DEADLINE_SECONDS=PATIENCE_SECONDS):
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
    """A channel of which a purge has removed all but a few messages of its first and of its last bucket."""
    channel = empty_channel()
    newest = bucket_at(postgres_now_us() // 1_000) - 1
    oldest = newest - BUCKETS + 1
    ids = [one for bucket in range(oldest, newest + 1) for one in ids_of(bucket)]
    for bucket in range(oldest, newest + 1):
        ledger.ensure_row(channel.pk, bucket)
    rivals.run_batches(rivals.INSERT, rows_of(channel.pk, ids))
    seconds_of_purge(moderator, scan(moderator, choose(channel.pk, after_id=ids[STAY], before_id=ids[-STAY])))
    return channel


def ids_of(bucket: int) -> list[int]:
    """Ids spread over a bucket, ascending."""
    first, last = bucket_ids(bucket)
    step = (last - first) // MESSAGES_A_BUCKET
    return [first + step * number + 7 for number in range(MESSAGES_A_BUCKET)]


def page_time(channel: Channel, rows: LedgerRows) -> Callable[[], float]:
    """The seconds of its newest page, the ledger being what `rows` make it."""

    def act() -> float:
        write_ledger(channel, rows)
        return seconds_of(lambda: read_page(channel.pk))

    return act


def write_ledger(channel: Channel, rows: LedgerRows) -> None:
    """Overwrite the channel's ledger, stamped now; no page remembers what it was."""
    rivals.run_batches(SET_LIVE, ((channel.pk, bucket, live) for bucket, live in rows.items()))
    ledger.forget_cache(channel.pk)
