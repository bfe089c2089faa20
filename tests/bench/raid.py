"""A raid: messages of fifty accounts among live talk in three channels."""

from __future__ import annotations

import time
from contextlib import ExitStack

from chatstore.domain.buckets import bucket_of
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import ms_of
from chatstore.models import Channel
from chatstore.store import authors, ledger, loads
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.tasks import enqueue_scan
from tests.bench import baseline
from tests.bench.bench_stack import begin_purge, wait_for, wait_for_scan
from tests.bench.channel_pool import ChannelPool
from tests.bench.channels import TEXT, empty_channel, make_guild, settle
from tests.bench.report import Figures
from tests.moderation.channels import buckets_of, recent_ids
from tests.moderation.incident.processes import ChatTraffic
from tests.moderation.incident.reading import PageReader

CHANNELS, RAID, ACCOUNTS = 3, 30_000, 50
"""Channels, messages of the raid in all of them, and the accounts that wrote them in twenty minutes."""

FIRST_ACCOUNT, BYSTANDER = 1_000, 1
POSTS_PER_SECOND = 20
"""Posts in each channel while the raid is purged."""

PAGES_AROUND = 3
"""Pages of each channel that are read again and again, besides the newest."""


def measure_raid(pool: ChannelPool) -> Figures:
    """Yield the seconds of the preview of a raid, from the confirmation until every page is clean, and until the end.

    Each channel has a reader that opens the newest page and pages within the raid in turn, and a process that posts.
    """
    guild = make_guild()
    raids = {channel: fill_raid(channel) for channel in [empty_channel(guild) for _ in range(CHANNELS)]}
    settle()
    accounts = tuple(range(FIRST_ACCOUNT, FIRST_ACCOUNT + ACCOUNTS))
    with ExitStack() as stack:
        readers: dict[Channel, PageReader] = {}
        for channel, (raid, kept) in raids.items():
            traffic = ChatTraffic(channel.pk, author_id=BYSTANDER, rate=POSTS_PER_SECOND)
            stack.callback(traffic.end)
            around = raid[len(raid) // PAGES_AROUND - 1 :: len(raid) // PAGES_AROUND]
            readers[channel] = PageReader(
                pool.moderator, channel.pk, around=around, kept=(dict.fromkeys(kept, ""), traffic.stored)
            )
            stack.callback(readers[channel].end)
        for reader in readers.values():
            reader.read_pages(1)
        began = time.monotonic()
        purge = draft_purge(moderator=pool.moderator, selection=Selection(guild_id=guild.pk, where=Author(accounts)))
        enqueue_scan(purge.pk)
        wait_for_scan(purge)
        yield "raid_preview_seconds", time.monotonic() - began
        yield "raid_clean_seconds", seconds_until_clean(pool, purge, {readers[c]: set(raids[c][0]) for c in raids})
    incomplete = sum(not page.is_complete for reader in readers.values() for page in reader.pages)
    if incomplete or purge.manifest != RAID:
        raise RuntimeError(f"{incomplete} pages lacked messages; {purge.manifest} of {RAID} were purged")


def fill_raid(channel: Channel) -> tuple[list[int], list[int]]:
    """Write the raid's share of a channel, and as many messages of another author between them; return both."""
    ids = recent_ids(2 * RAID // CHANNELS, minutes_ago=20, apart_ms=20 * MINUTE_MS * CHANNELS // (2 * RAID))
    accounts = [FIRST_ACCOUNT + number // 2 % ACCOUNTS if number % 2 == 0 else BYSTANDER for number in range(len(ids))]
    buckets = buckets_of(ids)
    for bucket in buckets:
        ledger.ensure_row(channel.pk, bucket)
        loads.clear_live_in([(channel.pk, bucket)])
    authors.ensure_author_buckets({(author, bucket, channel.pk) for author in set(accounts) for bucket in buckets})
    rows = (
        (channel.pk, bucket_of(i), i, author, 0, TEXT, ms_of(i) * 1_000)
        for i, author in zip(ids, accounts, strict=True)
    )
    baseline.run_batches(baseline.INSERT, rows)
    return ids[::2], ids[1::2]


def seconds_until_clean(pool: ChannelPool, purge: Purge, raid_in: dict[PageReader, set[int]]) -> float:
    """Confirm the purge; return the seconds until the last page that showed a message of the raid was shown."""
    confirmed = time.monotonic()
    begin_purge(pool.moderator, purge)
    wait_for(purge, PurgeState.DONE)
    for reader in raid_in:
        reader.read_pages(1)
    shown = [page.ended for reader, raid in raid_in.items() for page in reader.pages if not raid.isdisjoint(page.ids)]
    return max(shown) - confirmed
