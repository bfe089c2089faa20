"""Channels of a given size for the bench: median length 80 characters, four columns set, timestamps in the past."""

from __future__ import annotations

import itertools
import random
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.models import Channel, Guild
from chatstore.store import authors, ledger, loads, nodes, nodetool
from tests.bench import baseline
from tests.bench.timing import seconds_of

MESSAGES_PER_BUCKET = 33_334
"""A million messages fill 30 buckets."""

SETTLE_SECONDS = 600.0
"""Long enough to compact seven channels of a million messages."""

AUTHORS = 20

TEXT = "a message of the length that most have, about eighty characters of text in it all"

_WORDS = (
    "spam",
    "raid",
    "hello",
    "there",
    "everyone",
    "look",
    "at",
    "this",
    "new",
    "thing",
    "please",
    "join",
)


@dataclass(frozen=True, slots=True)
class Filled:
    """A channel with `size` messages; `ids` are ascending."""

    channel: Channel
    ids: list[int]

    @property
    def buckets(self) -> list[int]:
        """The channel's buckets, oldest first."""
        return sorted({bucket_of(self.ids[0]), *range(bucket_of(self.ids[0]), bucket_of(self.ids[-1]) + 1)})


def make_guild() -> Guild:
    """Create a guild without channels under a new id."""
    return Guild.objects.create(id=new_id(), name="bench")


def empty_channel(guild: Guild | None = None) -> Channel:
    """Create a channel without messages under a new id."""
    return Channel.objects.create(id=new_id(), name="bench", guild=guild)


def new_id() -> int:
    """Return an id of the current time that nothing else has."""
    return make_snowflake(time.time_ns() // 1_000_000) | secrets.randbits(22)


def fill_recent(channel: Channel, count: int) -> list[int]:
    """Write messages of the last hour, a second apart, of author 1; return their ids, ascending."""
    start = time.time_ns() // 1_000_000 - 55 * MINUTE_MS
    ids = [make_snowflake(start + index * 1_000) for index in range(count)]
    for bucket in {bucket_of(i) for i in ids}:
        ledger.ensure_row(channel.pk, bucket)
        loads.clear_live_in([(channel.pk, bucket)])
    rows = [(channel.pk, bucket_of(i), i, 1, 0, TEXT, ms_of(i) * 1_000) for i in ids]
    baseline.run_batches(baseline.INSERT, rows)
    return ids


@cache
def spread_ids(size: int) -> list[int]:
    """Return ascending ids, spread evenly over as many sealed buckets as a channel of that size has.

    The list is cached: a pool of a dozen channels of a million messages would otherwise take 500 MB.
    """
    buckets = max(2, round(size / MESSAGES_PER_BUCKET))
    newest = bucket_at(time.time_ns() // 1_000_000) - 1
    first, last = bucket_ids(newest - buckets + 1)[0], bucket_ids(newest)[1]
    step = (last - first) // size
    return [first + step * index + 7 for index in range(size)]


def rows_of(channel_id: int, ids: list[int]) -> Iterator[tuple[object, ...]]:
    """Yield the values of `baseline.INSERT` for each id, with the time of the id as write timestamp."""
    rng = random.Random(5)
    lengths = itertools.cycle([rng.randint(20, 140) for _ in range(997)])
    text = " ".join(rng.choices(_WORDS, k=400))
    for index, message_id in enumerate(ids):
        length = next(lengths)
        start = (index * 31) % 800
        content = text[start : start + length]
        key = channel_id, bucket_of(message_id), message_id
        yield (*key, index % AUTHORS + 1, 0, content, ms_of(message_id) * 1000)


def fill_channel(size: int) -> Filled:
    """Create a channel of `size` messages with ledger rows of unknown bounds and the author index. Does not settle."""
    return insert_channel(size)[0]


def insert_channel(size: int) -> tuple[Filled, float]:
    """Create a channel like `fill_channel`; also return the seconds its bare batched inserts took."""
    channel, ids = empty_channel(), spread_ids(size)
    filled = Filled(channel, ids)
    for bucket in filled.buckets:
        ledger.ensure_row(channel.id, bucket)
    places = {(author, bucket, channel.id) for bucket in filled.buckets for author in range(1, AUTHORS + 1)}
    authors.ensure_author_buckets(places)
    rows = list(rows_of(channel.id, ids))
    return filled, seconds_of(lambda: baseline.run_batches(baseline.INSERT, rows))


def settle() -> None:
    """Wait until all data is flushed and no node compacts; otherwise the next measurement would include that work."""
    hosts = nodes.list_addresses()
    # Most of the duration of a flush is the JVM start of nodetool.
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda host: nodetool.run(host, "flush"), hosts))
    end = time.monotonic() + SETTLE_SECONDS
    while any(node.compactions_waiting or node.compactions_running for node in nodes.read_nodes()):
        if time.monotonic() > end:
            raise RuntimeError(f"the nodes still compact after {SETTLE_SECONDS:.0f} s")
        time.sleep(0.2)
