"""Context of a purge's preview: counts by channel, author and bucket, the plan in words, samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy

from chatstore.domain.buckets import bucket_days
from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from moderation.domain.planner import DeleteStrategy, PlannedPart
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.breakdown import share_by_author, share_by_channel
from moderation.operations.preview.bucket_strip import PurgeMap
from moderation.operations.preview.purge_summary import BucketPreview, preview_of
from moderation.operations.preview.samples import SampleWindow, sample_manifest
from moderation.presentation.formats import format_number
from moderation.presentation.strip import Strip
from moderation.presentation.texts import translate
from moderation.views.rows import MessageRow, rows_of

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

AUTHORS_SHOWN = 12
CHANNELS_SHOWN = 20
BUCKETS_SHOWN = 200

MAX_STRIPS = 4
"""Up to this many channels have a strip each, besides the one of all channels."""

_PLAN = {
    DeleteStrategy.DROP: ngettext_lazy(
        "%(shown)s period is deleted as a whole.",
        "%(shown)s periods are deleted as a whole.",
        "count",
    ),
    DeleteStrategy.RANGES: ngettext_lazy(
        "Messages in %(shown)s period are deleted in ranges.",
        "Messages in %(shown)s periods are deleted in ranges.",
        "count",
    ),
    DeleteStrategy.REWRITE: ngettext_lazy(
        "%(shown)s period is rewritten with the messages to keep.",
        "%(shown)s periods are rewritten with the messages to keep.",
        "count",
    ),
    DeleteStrategy.ROWS: ngettext_lazy(
        "%(shown)s message is deleted individually, right away.",
        "%(shown)s messages are deleted individually, right away.",
        "count",
    ),
    DeleteStrategy.LATER: ngettext_lazy(
        "%(shown)s message from the last hour is deleted once that hour is over.",
        "%(shown)s messages from the last hour are deleted once that hour is over.",
        "count",
    ),
}
"""Sentences for a whole purge. Ranges and rewrites count buckets, the others messages."""

_RANGES = ngettext_lazy("%(shown)s range", "%(shown)s ranges", "count")
_REWRITTEN = ngettext_lazy("%(shown)s kept message rewritten", "%(shown)s kept messages rewritten", "count")
_ROWS = ngettext_lazy("%(shown)s individually, right away", "%(shown)s individually, right away", "count")
_LATER = ngettext_lazy("%(shown)s once their hour is over", "%(shown)s once their hour is over", "count")


@dataclass(frozen=True, slots=True)
class BucketRow:
    """A row of the plan's table. channel: None if there is only one, or the viewer may not see it."""

    channel: Channel | None
    first_day: date
    last_day: date
    matched: int
    survivors: int | None
    methods: Sequence[str]
    tombstones: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A message of a sample. is_matched: it is in the manifest."""

    row: MessageRow
    is_matched: bool


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Consecutive messages of a channel."""

    channel: Channel
    rows: Sequence[SampleRow]


@dataclass(frozen=True, slots=True)
class ChannelStrip:
    """A channel with its own strip."""

    channel: Channel
    strip: Strip


def describe_preview(
    purge: Purge, channels: Sequence[Channel], *, deleted: Mapping[int, int], strips: PurgeMap
) -> dict[str, Any]:
    """Return the context. channels: those that the viewer may see; of others only counts are shown.

    deleted: number of messages that are still deleted, by channel.
    """
    preview = preview_of(purge)
    shares = share_by_channel(preview, channels, deleted)
    known = {channel.pk: channel for channel in channels} if len(shares) > 1 else {}
    authors = share_by_author(purge, preview)
    context: dict[str, Any] = {
        "preview": preview,
        "first_day": timezone.localtime(preview.oldest).date().isoformat() if preview.oldest else "",
        "plan": _describe_plan(preview.per_bucket),
        "max_tombstones_seen": max((bucket.plan.tombstones for bucket in preview.per_bucket), default=0),
        "channel_shares": shares[:CHANNELS_SHOWN] if len(shares) > 1 else (),
        "channel_count": len(shares),
        "other_channels": max(len(shares) - CHANNELS_SHOWN, 0),
        "channel_strips": [ChannelStrip(channel, strips.draw([channel.pk])) for channel in channels]
        if 1 < len(channels) <= MAX_STRIPS
        else (),
        "authors": authors[:AUTHORS_SHOWN],
        # Otherwise some messages failed, were held or were restored in another way, which is not counted by author.
        "is_exact_by_author": sum(share.deleted for share in shares)
        == sum(author.count for author in authors if not author.is_restored),
        "other_authors": max(len(authors) - AUTHORS_SHOWN, 0),
        "survivors": _sum_known(bucket.survivors for bucket in preview.per_bucket),
        "bucket_rows": [_row_of(bucket, known) for bucket in preview.per_bucket[:BUCKETS_SHOWN]],
        "other_buckets": max(len(preview.per_bucket) - BUCKETS_SHOWN, 0),
        "undo_days": settings.QUARANTINE_DAYS,
    }
    return context | (_sample(purge, channels) if purge.state == PurgeState.READY else {})


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    """Return the sum, or None if a number is unknown."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _sample(purge: Purge, channels: Sequence[Channel]) -> dict[str, Any]:
    try:
        samples = sample_manifest(purge, channels)
    except StoreUnavailable as error:
        return {
            "samples_error": gettext("The messages can’t be shown right now: %(error)s")
            % {"error": translate(error.text)}
        }
    users = name_users(message for window in (*samples.oldest, *samples.newest) for message in window.messages)
    return {
        "sample_oldest": [_group_of(window, users) for window in samples.oldest],
        "sample_newest": [_group_of(window, users) for window in samples.newest],
        "users": users,
    }


def _group_of(window: SampleWindow, users: dict[int, ChatUser]) -> SampleGroup:
    # Each line shows its own date: two runs may be days apart.
    rows = [replace(row, day=None) for row in rows_of(window.messages, users)]
    return SampleGroup(window.channel, [SampleRow(row, row.message.message_id in window.matched) for row in rows])


def _row_of(bucket: BucketPreview, channels: dict[int, Channel]) -> BucketRow:
    first, last = bucket_days(bucket.bucket)
    return BucketRow(
        channel=channels.get(bucket.channel_id),
        first_day=first,
        last_day=last,
        matched=bucket.matched,
        survivors=bucket.survivors,
        methods=[method for part in bucket.plan.parts for method in _describe_part(part)],
        tombstones=bucket.plan.tombstones,
    )


def _describe_plan(buckets: Iterable[BucketPreview]) -> list[str]:
    """Return how and when messages are deleted, a sentence for each delete strategy in use."""
    counts = Counter[DeleteStrategy]()
    for bucket in buckets:
        for part in bucket.plan.parts:
            counts[part.strategy] += part.count if part.strategy in (DeleteStrategy.ROWS, DeleteStrategy.LATER) else 1
    return [_fill(pattern, counts[strategy]) for strategy, pattern in _PLAN.items() if counts[strategy]]


def _describe_part(part: PlannedPart) -> list[str]:
    """Return how a part of a bucket is deleted."""
    match part.strategy:
        case DeleteStrategy.DROP:
            return [gettext("as a whole")]
        case DeleteStrategy.RANGES:
            return [_fill(_RANGES, part.statements)]
        case DeleteStrategy.ROWS:
            return [_fill(_ROWS, part.count)]
        case DeleteStrategy.LATER:
            return [_fill(_LATER, part.count)]
        case DeleteStrategy.REWRITE:
            return [_fill(_RANGES, part.statements), _fill(_REWRITTEN, part.rewritten)]


def _fill(pattern: _StrPromise, count: int) -> str:
    return pattern % {"count": count, "shown": format_number(count)}
