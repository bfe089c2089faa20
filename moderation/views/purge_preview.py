"""Exactly what a purge takes: counts by channel, author and bucket, the plan in words, samples in context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.conf import settings

from chatstore.domain.buckets import bucket_days
from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from moderation.domain.planner import PlannedPart, Way
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.breakdown import share_by_author, share_by_channel
from moderation.operations.preview.bucket_strip import map_purge
from moderation.operations.preview.purge_summary import BucketPreview, preview_of, say_plan
from moderation.operations.preview.samples import Run, sample_manifest
from moderation.presentation.strip import Strip
from moderation.views.rows import Row, rows_of

AUTHORS_SHOWN = 12
CHANNELS_SHOWN = 20
BUCKETS_SHOWN = 200

STRIPS_AT_MOST = 4
"""Channels that have a strip each, beside the one of all of them."""


@dataclass(frozen=True, slots=True)
class BucketRow:
    """A line of the plan's table. channel: None where there is only one, or the viewer may not see it."""

    channel: Channel | None
    first_day: date
    last_day: date
    matched: int
    survivors: int
    how: str
    tombstones: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A message of a sample; goes: it is of the manifest."""

    row: Row
    goes: bool


@dataclass(frozen=True, slots=True)
class SampleRun:
    """Messages that follow each other in a channel."""

    channel: Channel
    rows: Sequence[SampleRow]


@dataclass(frozen=True, slots=True)
class ChannelStrip:
    """A channel's own strip."""

    channel: Channel
    strip: Strip


def describe_preview(purge: Purge, channels: Sequence[Channel]) -> dict[str, Any]:
    """The context. channels: those that the viewer may see; of the others there are only counts."""
    preview = preview_of(purge)
    shares = share_by_channel(purge, preview, channels)
    known = {channel.pk: channel for channel in channels} if len(shares) > 1 else {}
    authors = share_by_author(purge, preview)
    context: dict[str, Any] = {
        "preview": preview,
        "place": preview.oldest,
        "plan_words": say_plan(preview),
        "channel_shares": shares[:CHANNELS_SHOWN] if len(shares) > 1 else (),
        "channel_count": len(shares),
        "other_channels": max(len(shares) - CHANNELS_SHOWN, 0),
        "channel_strips": _strips(purge, channels) if 1 < len(channels) <= STRIPS_AT_MOST else (),
        "authors": authors[:AUTHORS_SHOWN],
        # Else something of it failed, was held, or came back otherwise, and nobody noted by whom it was.
        "is_exact_by_author": sum(share.standing for share in shares)
        == sum(author.count for author in authors if not author.is_back),
        "other_authors": max(len(authors) - AUTHORS_SHOWN, 0),
        "survivors": sum(bucket.survivors for bucket in preview.per_bucket),
        "bucket_rows": [_row_of(bucket, known) for bucket in preview.per_bucket[:BUCKETS_SHOWN]],
        "other_buckets": max(len(preview.per_bucket) - BUCKETS_SHOWN, 0),
        "keep_days": settings.QUARANTINE_DAYS,
    }
    return context | (_sample(purge, channels) if purge.state == PurgeState.READY else {})


def _strips(purge: Purge, channels: Sequence[Channel]) -> list[ChannelStrip]:
    return [ChannelStrip(channel, map_purge(purge, [channel.pk])) for channel in channels]


def _sample(purge: Purge, channels: Sequence[Channel]) -> dict[str, Any]:
    try:
        samples = sample_manifest(purge, channels)
    except StoreUnavailable as error:
        return {"samples_silent": f"The messages cannot be shown now: {error}"}
    users = name_users(message for run in (*samples.oldest, *samples.newest) for message in run.messages)
    return {
        "sample_oldest": [_run_of(run, users) for run in samples.oldest],
        "sample_newest": [_run_of(run, users) for run in samples.newest],
        "users": users,
    }


def _run_of(run: Run, users: dict[int, ChatUser]) -> SampleRun:
    # Each line has its own date, since days may lie between two runs.
    rows = [replace(row, day=None) for row in rows_of(run.messages, users)]
    return SampleRun(run.channel, [SampleRow(row, row.message.message_id in run.goes) for row in rows])


def _row_of(bucket: BucketPreview, channels: dict[int, Channel]) -> BucketRow:
    first, last = bucket_days(bucket.bucket)
    return BucketRow(
        channel=channels.get(bucket.channel_id),
        first_day=first,
        last_day=last,
        matched=bucket.matched,
        survivors=bucket.survivors,
        how="; ".join(map(_say_part, bucket.plan.parts)),
        tombstones=bucket.plan.tombstones,
    )


def _say_part(part: PlannedPart) -> str:
    if part.way is Way.DROP:
        return "the ten days dropped whole"
    if part.way is Way.RANGES:
        return f"{part.statements:,} range{'' if part.statements == 1 else 's'}"
    if part.way is Way.ROWS:
        return f"{part.count:,} one by one, at once"
    if part.way is Way.LATER:
        return f"{part.count:,} when their hour is over"
    return f"{part.statements:,} span{'' if part.statements == 1 else 's'}, {part.rewritten:,} that stay written again"
