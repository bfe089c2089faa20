"""A channel with buckets in every state and ninety days of history, for the screenshots of its health."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.live import EMPTY, Live
from chatstore.domain.runs import RunState
from chatstore.models import Channel, ChannelDay, Guild, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.health.channel_health import SEEN_BY_REPAIR
from chatstore.operations.health.probes import probe_channel
from chatstore.operations.health.summaries import refresh_summaries
from chatstore.operations.ledger.summaries import count_uncovered
from chatstore.store import ledger, top_partitions
from tests.chatstore.figures import note
from tests.moderation.channels import WILMA, by_victor, now_ms, purge_now, recent_ids, write

BUCKETS = 74
DEAD = 61_204
"""Tombstones of the heavy bucket of the unhealthy channel."""
WORST = (38_412, 12_850, 4_207, 1_316)
"""Tombstones of the worst buckets of other channels."""


@dataclass(frozen=True, slots=True)
class UnhealthyChannel:
    """The channel, a bucket full of tombstones, a purged one, and an unmeasured one."""

    channel: Channel
    dead: int
    purged: int
    unknown: int


def make_unhealthy_channel(mona: User, otto: User, *, beside: Sequence[int]) -> UnhealthyChannel:
    """Create the channel in two seconds: except for two buckets it has only a ledger and figures, no messages.

    beside: channels with messages, which get tombstones too, so that the worst partitions are of several channels.
    """
    newest = bucket_at(now_ms())
    first = newest - BUCKETS
    guild, _ = Guild.objects.get_or_create(pk=bucket_ids(first)[0], defaults={"name": "Northside Makers"})
    number = now_ms() % 1_000_000
    channel = Channel.objects.create(pk=bucket_ids(first)[0] + number, guild=guild, name="general", category="Town")
    for bucket in range(first, newest + 1):
        if bucket % 11 not in (3, 4) and bucket != newest - 30:
            _fill(channel.pk, bucket, newest)
    unhealthy = UnhealthyChannel(channel, dead=newest - 9, purged=newest - 2, unknown=newest - 30)
    note(
        channel.pk, unhealthy.dead, tombstones=DEAD, live_rows=12, page_us=148_000, page_tombstones=61_192, hours_ago=3
    )
    note(channel.pk, unhealthy.dead, hours_ago=4, source=top_partitions.SOURCE, **{SEEN_BY_REPAIR: DEAD})
    note(channel.pk, newest - 20, bytes=72_400_000, source=top_partitions.SOURCE, hours_ago=5)
    note(channel.pk, newest - 31, tombstones=1_840, live_rows=20_311, hours_ago=40)
    ledger.ensure_row(channel.pk, unhealthy.unknown)
    # A probe reads them, as does the page of the channel.
    write(channel, recent_ids(120), author=WILMA)
    ids = [bucket_ids(unhealthy.purged)[0] + 7_000_000 * n for n in range(1, 400)]
    assert bucket_of(ids[-1]) == unhealthy.purged
    write(channel, ids)
    purge_now(mona, by_victor(channel))
    _add_days(channel.pk)
    _add_runs(f"{channel.pk}:{unhealthy.dead}", otto)
    probe_channel(channel.pk, now=postgres_now())
    for channel_id, tombstones in zip(beside, WORST, strict=False):
        note(channel_id, newest - 5, tombstones=tombstones, hours_ago=7)
    _measure_all({channel.pk, *beside})
    return unhealthy


def _fill(channel_id: int, bucket: int, newest: int) -> None:
    ledger.ensure_row(channel_id, bucket)
    if bucket >= newest:
        return
    begin, end = bucket_ids(bucket)
    count = round(900 * (1 + math.sin(bucket / 5)) ** 3) + bucket % 7
    live = EMPTY if bucket % 13 == 0 else Live(begin + 50, end - 50, 8 if bucket % 17 == 0 else count)
    # With a timestamp before any read, so that later writes win.
    ledger.set_live(channel_id, bucket, live, read_began_us=postgres_now_us())
    note(channel_id, bucket, live_rows=live.count or 0, tombstones=bucket % 5, hours_ago=6, source="own read")
    note(channel_id, bucket, bytes=(live.count or 0) * 310, hours_ago=5, source=top_partitions.SOURCE)


def _measure_all(channel_ids: set[int]) -> None:
    """Fill the table of all channels. Some were probed."""
    channels = list(Channel.objects.order_by("-pk").values_list("pk", flat=True)[:500])
    for probed in channels[:8]:
        probe_channel(probed, now=postgres_now())
    # They may be older than the channels of tests.
    refresh_summaries({*channel_ids, *channels})
    count_uncovered(None)


def _add_days(channel_id: int) -> None:
    today = postgres_now().date()
    rows = []
    for ago in range(1, 90):
        if 47 < ago < 52:
            continue
        # The last day has the figure of the bucket.
        dead = 40 + ago % 9 if ago > 33 else DEAD - (ago - 1) * 3
        rows.append(
            ChannelDay(
                channel_id=channel_id,
                day=today - dt.timedelta(days=ago),
                tombstones=dead,
                bytes=72_400_000 - ago * 210_000,
                read_ms=2.2 + (ago % 5) * 0.2 + (140 if 6 < ago <= 33 else 0),
            )
        )
    ChannelDay.objects.bulk_create(rows)


def _add_runs(subject: str, otto: User) -> None:
    now = postgres_now()
    for job, hours, state, result, error in (
        ("measure", 4, RunState.DONE, {"replicas are": "in sync", "tombstones on 127.0.0.1": DEAD}, ""),
        ("compact", 3, RunState.FAILED, {}, "The last repair does not cover the last delete here. Repair it first."),
    ):
        at = now - dt.timedelta(hours=hours)
        JobRun.objects.create(
            job=job, subject=subject, state=state, due_at=at, started_at=at, ended_at=at + dt.timedelta(seconds=4),
            requested_by=otto, result=result, error=error,
        )  # fmt: skip
    for days in (12, 40, 70):
        at = now - dt.timedelta(days=days)
        JobRun.objects.create(
            job="repair_bucket", subject=subject, state=RunState.DONE, due_at=at, started_at=at, ended_at=at
        )
