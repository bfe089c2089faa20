"""Messages of a purge over time, channel by channel, in slots from months down to a minute.

A message id contains its time. The manifest has the number of ids of each bucket, with the first and the last of them;
only buckets that reach into several slots are unpacked, up to `MAX_IDS` ids. The others are estimated.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models.functions import Substr

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.domain.snowflakes import first_id_at, unix_ms
from moderation.domain.outcomes import DeletionStatus, status_of_step
from moderation.domain.packing import count_packed, unpack_ids
from moderation.domain.states import DELETING, PurgeState
from moderation.domain.zoom import Window, count_in_slots, spread_evenly
from moderation.models import Purge
from moderation.operations.preview.manifest_summary import BucketEntry, entries_in

MAX_ROWS = 8
"""Channels that have a row each."""

MAX_IDS = 200_000
"""Ids that are unpacked for one picture: about 20 ms."""

MAX_BUCKETS = 300
"""Buckets whose ids are read."""


@dataclass(frozen=True, slots=True)
class TimeRow:
    """Messages of a channel in each slot of the window, by status."""

    channel_id: int
    counts: Sequence[Counter[DeletionStatus]]


@dataclass(frozen=True, slots=True)
class TimeRows:
    """Rows of the channels. edges: the beginnings of the slots, and the end. is_exact: False if some are estimated."""

    rows: Sequence[TimeRow]
    edges: Sequence[dt.datetime]
    is_exact: bool


def count_over_time(
    purge: Purge,
    window: Window,
    channel_ids: Sequence[int],
    *,
    entries: Sequence[BucketEntry] | None = None,
    without: Mapping[BucketKey, set[int]],
) -> TimeRows:
    """Count the messages that the purge includes in some channels, in each slot of a window.

    entries: of the manifest in these channels, and maybe in others, if they are read already. without: messages of a
    preview that do not count.
    """
    times = window.edges
    edges = [first_id_at(unix_ms(time)) for time in times]
    counts = {channel_id: [Counter[DeletionStatus]() for _ in edges[1:]] for channel_id in channel_ids}
    spans: dict[BucketKey, tuple[int, int, int]] = {}
    if entries is None:
        entries = entries_in(purge, channel_ids, buckets=(bucket_of(edges[0]), bucket_of(edges[-1])))
    for channel_id, bucket, count, _survivors, first, last in entries:
        is_wanted = count > 0 and channel_id in counts
        if is_wanted and first is not None and last is not None and last >= edges[0] and first < edges[-1]:
            spans[channel_id, bucket] = count, first, last
    ids = _read_ids(purge, _choose(spans, edges), without)
    sums = _read_sums(
        purge, {key: count - len(without.get(key, ())) for key, (count, _, _) in spans.items() if key not in ids}
    )
    is_exact = True
    for key, (_, first, last) in spans.items():
        here, from_slot, to_slot = counts[key[0]], *_slots_of(first, last, edges)
        some = edges[from_slot : to_slot + 2]
        if key in ids:
            parts = {status: count_in_slots(sorted(known), some) for status, known in ids[key].items()}
        elif from_slot == to_slot:
            parts = {status: [count] for status, count in sums[key].items()}
        else:
            parts = {status: spread_evenly(count, first, last, some) for status, count in sums[key].items()}
            is_exact = False
        for status, numbers in parts.items():
            for slot, number in enumerate(numbers, from_slot):
                here[slot][status] += number
    return TimeRows([TimeRow(channel_id, counts[channel_id]) for channel_id in channel_ids], times, is_exact)


def _status_of_preview(purge: Purge) -> DeletionStatus | None:
    """Return the status of all messages of a purge that was not confirmed; None of one that was."""
    if purge.confirmed_at is not None:
        return None
    return DeletionStatus.KEPT if purge.state == PurgeState.EXPIRED else DeletionStatus.TO_DELETE


def _choose(spans: dict[BucketKey, tuple[int, int, int]], edges: Sequence[int]) -> list[BucketKey]:
    """Return the buckets to unpack: those that reach into several slots, the smallest first, up to the limits."""
    chosen: list[BucketKey] = []
    total = 0
    for key, (count, first, last) in sorted(spans.items(), key=lambda item: item[1][0]):
        from_slot, to_slot = _slots_of(first, last, edges)
        if from_slot == to_slot:
            continue
        total += count
        if total > MAX_IDS or len(chosen) == MAX_BUCKETS:
            break
        chosen.append(key)
    return chosen


def _slots_of(first: int, last: int, edges: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last slot of some ids that the window overlaps.

    What reaches beyond the window is never in one slot, so that only the part inside is counted.
    """
    last_slot = len(edges) - 2
    from_slot = max(bisect_right(edges, first) - 1, 0)
    to_slot = min(bisect_right(edges, last) - 1, last_slot)
    if from_slot == to_slot and (first < edges[0] or last >= edges[-1]):
        return (from_slot - 1, to_slot) if from_slot else (from_slot, to_slot + 1)
    return from_slot, to_slot


def _read_ids(
    purge: Purge, keys: Sequence[BucketKey], without: Mapping[BucketKey, set[int]]
) -> dict[BucketKey, dict[DeletionStatus, list[int]]]:
    """Return the ids of some buckets by status. A bucket may have several steps."""
    found: defaultdict[BucketKey, dict[DeletionStatus, list[int]]] = defaultdict(lambda: defaultdict(list))
    if not keys:
        return found
    of_preview = _status_of_preview(purge)
    steps = purge.steps.in_buckets(keys).filter(kind__in=DELETING).order_by()
    columns = steps.values_list("channel_id", "bucket", "ids", "state", "failed_ids", "undone_ids")
    for channel_id, bucket, packed, state, failed, undone in columns:
        parts, others = found[channel_id, bucket], unpack_ids(packed)
        if absent := without.get((channel_id, bucket)):
            others = [message_id for message_id in others if message_id not in absent]
        for status, some in ((DeletionStatus.RESTORED, undone), (DeletionStatus.FAILED, failed)):
            if some is not None:
                apart = set(unpack_ids(some))
                parts[status] += (message_id for message_id in others if message_id in apart)
                others = [message_id for message_id in others if message_id not in apart]
        parts[of_preview or status_of_step(state)] += others
    return found


def _read_sums(purge: Purge, counts: dict[BucketKey, int]) -> dict[BucketKey, Counter[DeletionStatus]]:
    """Return the numbers of messages of some buckets by status, without unpacking their ids."""
    if of_preview := _status_of_preview(purge):
        return {key: Counter({of_preview: count}) for key, count in counts.items()}
    found: dict[BucketKey, Counter[DeletionStatus]] = {key: Counter() for key in counts}
    if counts:
        steps = purge.steps.in_buckets(counts).filter(kind__in=DELETING).order_by()
        # The first bytes of packed ids are their number.
        columns = steps.values_list("channel_id", "bucket", "state", "count", "failed", Substr("undone_ids", 1, 8))
        for channel_id, bucket, state, count, failed, undone in columns:
            parts, restored = found[channel_id, bucket], count_packed(undone)
            parts[DeletionStatus.RESTORED] += restored
            parts[DeletionStatus.FAILED] += failed
            parts[status_of_step(state)] += count - restored - failed
    return found
