"""Sample of a preview: its first and last messages, among their neighbours that are kept.

While the scan runs: the newest matches so far, without neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Any

from django.db.models import F, QuerySet

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID, Message, Page
from chatstore.domain.snowflakes import MAX_ID, MIN_ID
from chatstore.models import Channel
from chatstore.store import messages, scans
from chatstore.store.reading import reader
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING
from moderation.models import Purge, Step
from moderation.operations.access.visibility import Actor, visible_channels
from moderation.operations.preview.manifest_summary import Summary

SAMPLES = 15
CONTEXT = 2
"""Messages shown before and after each window of samples."""

WINDOW = 25
"""Messages of a read from the outermost sample on, towards the others: those that are close together share it."""

SAMPLES_OF_SEVERAL = 9
"""Samples per end of the manifest of several channels, together."""

MAX_READS = 3
"""Per end, and of how many channels there are samples. Samples that are far apart take one read each, and the rest of
them is left out: each read is up to seven statements.
"""

STEPS_AT_ONCE = 8
"""Steps whose IDs are in memory at a time."""

NEWEST_MATCHES = 5
"""Matches shown while the scan runs. They are read again whenever it has stored buckets."""


@dataclass(frozen=True, slots=True)
class SampleWindow:
    """Consecutive messages of a channel, oldest first. matched: ids to delete."""

    channel: Channel
    messages: list[Message] = field(default_factory=list)
    matched: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of both ends of a manifest by time, of the largest channels.

    newest: without the messages that are among the oldest. is_whole: the samples are all messages of the manifest.
    """

    oldest: Sequence[SampleWindow] = ()
    newest: Sequence[SampleWindow] = ()
    is_whole: bool = False


def sample_manifest(user: Actor, purge: Purge, summary: Summary) -> Samples:
    """Return the samples in the channels that the user may see, with their current contents.

    Of several channels, those of the largest: each has its own first and last messages, or one of them would fill the
    sample. Messages that no longer exist are left out. Raises `StoreUnavailable`.
    """
    known = visible_channels(user).select_related("guild").in_bulk({one.channel_id for one in summary.channels})
    channels = [known[one.channel_id] for one in summary.channels if one.channel_id in known][:MAX_READS]
    if not channels:
        return Samples()
    ends = (
        {channels[0].pk: (summary.oldest, summary.newest)} if summary.channel_count == 1 else _ends_in(purge, channels)
    )
    limit = (SAMPLES if len(channels) == 1 else SAMPLES_OF_SEVERAL) // len(channels)
    reads = ceil(MAX_READS / len(channels))
    oldest, newest = list[SampleWindow](), list[SampleWindow]()
    for channel in channels:
        # None if the preview was narrowed after its summary was read.
        oldest_buckets, newest_buckets = ends.get(channel.pk, ((), ()))
        first = _end_of(purge, oldest_buckets, newest=False, limit=limit)
        last = _end_of(purge, newest_buckets, newest=True, limit=limit)
        last = [pair for pair in last if pair not in set(first)]
        oldest += (shown := _windows_of(channel, first, newest=False, reads=reads))
        newest += _without(_windows_of(channel, last, newest=True, reads=reads), shown=shown)
    _mark_matched(purge, windows := [*oldest, *newest])
    return Samples(oldest, newest, is_whole=sum(len(window.matched) for window in windows) == summary.count)


def _ends_in(purge: Purge, channels: Sequence[Channel]) -> dict[int, tuple[Sequence[BucketKey], Sequence[BucketKey]]]:
    """Return the first and the last buckets of a manifest in each of some channels that has any, as many as samples."""
    entries = purge.manifest_buckets.filter(channel_id__in=[channel.pk for channel in channels]).order_by("bucket")
    keys: dict[int, list[BucketKey]] = defaultdict(list)
    for channel_id, bucket in entries.values_list("channel_id", "bucket"):
        keys[channel_id].append((channel_id, bucket))
    return {channel_id: (found[:SAMPLES], found[-SAMPLES:]) for channel_id, found in keys.items()}


def newest_matches(user: Actor, purge: Purge, summary: Summary) -> list[SampleWindow]:
    """Return the newest matches that a running scan has stored, newest first, in the channels that the user may see.

    Messages that no longer exist are left out. Costs few reads, because pages poll. Raises `StoreUnavailable`.
    """
    known = visible_channels(user).select_related("guild").in_bulk({channel_id for channel_id, _ in summary.newest})
    buckets = [key for key in summary.newest if key[0] in known][:NEWEST_MATCHES]
    matches = _end_of(purge, buckets, newest=True, limit=NEWEST_MATCHES)
    ids: dict[BucketKey, list[int]] = defaultdict(list)
    for message_id, channel_id in matches:
        ids[channel_id, bucket_of(message_id)].append(message_id)
    live = {
        (row[MESSAGE_ID], channel_id): messages.to_message(channel_id, row)
        for (channel_id, _), rows in scans.read_rows_with_writetime_in(ids)
        for row in rows
        if row[AUTHOR_ID] is not None
    }
    windows: list[SampleWindow] = []
    for message_id, channel_id in filter(live.__contains__, matches):
        if not windows or windows[-1].channel.pk != channel_id:
            windows.append(SampleWindow(known[channel_id]))
        windows[-1].messages.append(live[message_id, channel_id])
        windows[-1].matched.add(message_id)
    return windows


def _end_of(purge: Purge, buckets: Sequence[BucketKey], *, newest: bool, limit: int = SAMPLES) -> list[tuple[int, int]]:
    """Return (message id, channel id) of the samples at one end. buckets: those that reach furthest to it."""
    last_complete = F("last_id").desc(nulls_first=True) if newest else F("first_id").asc(nulls_first=True)
    steps = Step.objects.in_buckets(buckets).filter(purge=purge, kind__in=DELETING).order_by(last_complete, "ordinal")
    best: list[tuple[int, int]] = []
    for channel_id, packed, first_id, last_id in _read_in_parts(
        steps.values_list("channel_id", "ids", "first_id", "last_id")
    ):
        bound = last_id if newest else first_id
        if len(best) == limit and bound is not None and (bound < best[-1][0] if newest else bound > best[-1][0]):
            break
        ids = unpack_ids(packed)
        best += [(message_id, channel_id) for message_id in (ids[-limit:] if newest else ids[:limit])]
        best = sorted(best, reverse=newest)[:limit]
    return best


def _read_in_parts(steps: QuerySet[Any, tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of a few dozen steps, some at a time: each may have a hundred thousand IDs, and mostly the first rows
    are all that is needed. A cursor of the server would cost three statements.
    """
    at = 0
    while rows := list(steps[at : at + STEPS_AT_ONCE]):
        yield from rows
        if len(rows) < STEPS_AT_ONCE:
            return
        at += STEPS_AT_ONCE


def _windows_of(
    channel: Channel, samples: Sequence[tuple[int, int]], *, newest: bool, reads: int
) -> list[SampleWindow]:
    """Return the windows around samples of a channel, in ascending order. samples: the outermost first.

    newest: the others are older than the outermost one, not newer.
    """
    # By message id, with the id of the message before it, if that was read.
    shown: dict[int, tuple[Message, int | None]] = {}
    left = [message_id for message_id, _ in samples]
    for _ in range(reads):
        if not left:
            break
        outermost = left[0]
        page = reader.read_around(
            channel.pk, outermost, CONTEXT + 1 + WINDOW, newer_limit=CONTEXT if newest else WINDOW
        )
        rows = page.messages[::-1]
        low, high = _complete_interval(page, outermost)
        here = [i for i in left if low <= i <= high]
        left = [i for i in left if not low <= i <= high]
        for position in _positions_near(rows, here):
            message_id = rows[position].message_id
            before = rows[position - 1].message_id if position else None
            if before is not None or message_id not in shown:
                shown[message_id] = rows[position], before
    windows: list[SampleWindow] = []
    last: int | None = None
    for message_id, (message, before) in sorted(shown.items()):
        if last is None or before != last:
            windows.append(SampleWindow(channel))
        windows[-1].messages.append(message)
        last = message_id
    return windows


def _without(windows: Iterable[SampleWindow], *, shown: Iterable[SampleWindow]) -> Iterator[SampleWindow]:
    """Yield windows of a channel without the messages that others show: of few matches, the neighbours at both ends are
    the same.
    """
    known = {message.message_id for window in shown for message in window.messages}
    for window in windows:
        new = (message.message_id not in known for message in window.messages)
        for is_new, part in groupby(zip(new, window.messages, strict=True), key=itemgetter(0)):
            if is_new:
                yield SampleWindow(window.channel, [message for _, message in part])


def _complete_interval(page: Page, around: int) -> tuple[int, int]:
    """Return the first and the last id whose context on both sides is on the page, `around` included."""
    rows = page.messages[::-1]
    low = MIN_ID if page.older is None else rows[CONTEXT].message_id if len(rows) > CONTEXT else around
    high = MAX_ID if page.newer is None else rows[-1 - CONTEXT].message_id if len(rows) > CONTEXT else around
    return min(low, around), max(high, around)


def _positions_near(rows: Sequence[Message], samples: Sequence[int]) -> Iterator[int]:
    wanted = frozenset(samples)
    at = [position for position, row in enumerate(rows) if row.message_id in wanted]
    for position in range(len(rows)):
        index = bisect_left(at, position - CONTEXT)
        if index < len(at) and at[index] <= position + CONTEXT:
            yield position


def _mark_matched(purge: Purge, windows: Sequence[SampleWindow]) -> None:
    """Mark the matched ids among all messages shown: neighbours of a sample may match too."""
    shown: dict[tuple[int, int], set[int]] = defaultdict(set)
    for window in windows:
        for message in window.messages:
            shown[window.channel.pk, bucket_of(message.message_id)].add(message.message_id)
    matched: dict[int, set[int]] = defaultdict(set)
    steps = purge.steps.in_buckets(shown.keys()).filter(kind__in=DELETING).order_by("ordinal")
    for channel_id, bucket, packed in _read_in_parts(steps.values_list("channel_id", "bucket", "ids")):
        matched[channel_id] |= shown[channel_id, bucket].intersection(unpack_ids(packed))
    for window in windows:
        window.matched.update(matched[window.channel.pk].intersection(each.message_id for each in window.messages))
