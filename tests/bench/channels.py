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
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.models import Channel
from chatstore.store import authors, ledger, nodes, nodetool
from tests.bench import baseline
from tests.bench.timing import seconds_of

MESSAGES_PER_BUCKET = 33_334
"""A million messages fill 30 buckets."""

SETTLE_SECONDS = 600.0
"""Long enough to compact seven channels of a million messages."""

AUTHORS = 20
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


def empty_channel() -> Channel:
    """Create a channel without messages under a new id."""
    now_ms = time.time_ns() // 1_000_000
    return Channel.objects.create(id=make_snowflake(now_ms) | secrets.randbits(22), name="bench")


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
