"""The newest page of a channel most of whose buckets purges have emptied: by the ledger, and as if it knew nothing."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User
from django.test import override_settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.models import Channel
from chatstore.operations.clock import postgres_now_us
from chatstore.store import ledger
from chatstore.store.reader import read_page, trace_newest_page
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


def measure_emptied(moderator: User) -> Figures:
    """emptied_page_vs_ignored: of 180 buckets 178 are empty; milliseconds and statements of both sides."""
    known, ignored = make_emptied(moderator), make_emptied(moderator)
    for bucket, _ in ledger.read_ledger(ignored.pk):
        ledger.clear_live(ignored.pk, bucket)
    with override_settings(PAGE_DEADLINE_SECONDS=PATIENCE_SECONDS):
        alternate(page_time(known), page_time(ignored), runs=2)
        sides = alternate(page_time(known), page_time(ignored), runs=PAGES)
        ours, theirs = trace_newest_page(known.pk), trace_newest_page(ignored.pk)
    yield "emptied_page_vs_ignored", sides.time
    yield "emptied_page_milliseconds", sides.ours * 1_000
    yield "ignored_page_milliseconds", sides.theirs * 1_000
    yield "emptied_page_statements", ours.statements
    yield "ignored_page_statements", theirs.statements


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


def page_time(channel: Channel) -> Callable[[], float]:
    """The seconds of its newest page, the ledger asked anew each time."""

    def act() -> float:
        ledger.forget_cache(channel.pk)
        return seconds_of(lambda: read_page(channel.pk))

    return act
