"""Check for buckets over a threshold, from the replicas' lists and from the figures of suspect channels.

A channel is suspect if a replica lists one of its buckets, a day's figures exceeded a limit, many messages
were deleted in the last two days, or a finding is open. The latest of several measurements counts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from django.conf import settings
from django.db.models import Q, Sum

from chatstore.domain.buckets import bucket_days, format_date_range
from chatstore.domain.datetimes import format_datetime
from chatstore.domain.health import KnownBucket, Limits, format_bytes, severity_of
from chatstore.domain.runs import Severity
from chatstore.models import BucketDeletes, Channel, ChannelDay, Finding
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.health.channel_health import SEEN_BY_REPAIR, health_limits, tombstones_in
from chatstore.store import figures, top_partitions
from chatstore.store.figures import Figure
from chatstore.store.top_partitions import Bucket, TopPartitions

HEAVY_BUCKET = "heavy bucket"

LATELY = dt.timedelta(days=2)

Measured = Mapping[str, Figure]


def check_heavy_buckets(now: dt.datetime) -> None:
    """Monitor check: update the findings of heavy buckets. Raises `StoreUnavailable`."""
    listed = _read_listed()
    channels = {channel_id for channel_id, _ in listed} | _channels_in_question(now)
    heavy: dict[Bucket, Problem] = {}
    names = Channel.objects.select_related("guild").in_bulk(channels)
    for channel_id in channels:
        measured = figures.read_figures(channel_id)
        for bucket in measured.keys() | {bucket for channel, bucket in listed if channel == channel_id}:
            noted = measured.get(bucket, {})
            changed = _changed_entries(listed.get((channel_id, bucket), {}), noted)
            for name, figure in changed.items():
                # Record it, so that every page shows the same figure as the finding.
                figures.note_figures(
                    channel_id, bucket, {name: figure.value}, source=figure.source, measured_at=figure.measured_at
                )
            found = _assess({**noted, **_later(changed, noted)})
            if found is not None:
                place = f"{names.get(channel_id) or f'Channel {channel_id}'}, {format_date_range(*bucket_days(bucket))}"
                heavy[channel_id, bucket] = Problem(found.severity, f"{place}: {found.summary}", found.details)
    sync_findings(HEAVY_BUCKET, {f"{channel_id}:{bucket}": found for (channel_id, bucket), found in heavy.items()})


def _read_listed() -> Mapping[Bucket, Measured]:
    """Return what replicas list above a limit. If they differ, the larger value counts, since a read scans it."""
    found: dict[Bucket, dict[str, Figure]] = {}
    for lists in top_partitions.read_latest().values():
        if not isinstance(lists, TopPartitions) or lists.updated_at is None:
            continue
        for name, values, limit in (
            (SEEN_BY_REPAIR, lists.tombstones, settings.HEALTH_WARN_TOMBSTONES),
            ("bytes", lists.sizes, settings.HEALTH_WARN_BYTES),
        ):
            for bucket, value in values.items():
                known = found.get(bucket, {}).get(name)
                if value >= limit and (known is None or known.value < value):
                    figure = Figure(value, top_partitions.SOURCE, lists.updated_at)
                    found.setdefault(bucket, {})[name] = figure
    return found


def _changed_entries(listed: Measured, noted: Measured) -> Measured:
    """Return listed figures whose value has not been recorded yet.

    A list has one time for all its entries, so an old entry appears as recent as the latest.
    """
    return {name: one for name, one in listed.items() if name not in noted or noted[name].value != one.value}


def _later(changed: Measured, noted: Measured) -> Measured:
    """Return figures measured later than the recorded ones of the same name."""
    return {
        name: one for name, one in changed.items() if name not in noted or noted[name].measured_at <= one.measured_at
    }


def _channels_in_question(now: dt.datetime) -> set[int]:
    over = Q(tombstones__gte=settings.HEALTH_WARN_TOMBSTONES) | Q(bytes__gte=settings.HEALTH_WARN_BYTES)
    days = ChannelDay.objects.filter(over, day__gte=(now - LATELY).date()).values_list("channel_id", flat=True)
    deletes = BucketDeletes.objects.filter(hour__gte=now - LATELY).values("channel_id", "bucket")
    many = deletes.annotate(sum=Sum("deletes")).filter(sum__gte=settings.HEALTH_WARN_TOMBSTONES)
    known = Finding.objects.filter(kind=HEAVY_BUCKET, closed_at=None).values_list("subject", flat=True)
    return {*days, *many.values_list("channel_id", flat=True), *(int(subject.partition(":")[0]) for subject in known)}


def _assess(measured: Measured) -> Problem | None:
    """Return the problem with a bucket, from its measurements; None: there is none."""
    tombstones, size = tombstones_in(measured), measured.get("bytes")
    limits = health_limits()
    known = KnownBucket(
        live=None,
        tombstones=None if tombstones is None else tombstones.value,
        bytes=None if size is None else size.value,
    )
    severity = severity_of(known, limits)
    if severity is None:
        return None
    return _describe_problem(severity, limits, tombstones, size)


def _describe_problem(severity: Severity, limits: Limits, tombstones: Figure | None, size: Figure | None) -> Problem:
    parts, details = [], {}
    if tombstones is not None and tombstones.value >= limits.warn_tombstones:
        parts.append(f"a full read scans {tombstones.value:,} tombstones ({_format_source(tombstones)})")
        details["tombstones"] = tombstones.value
    if size is not None and size.value >= limits.warn_bytes:
        parts.append(f"{format_bytes(size.value)} in one partition ({_format_source(size)})")
        details["bytes"] = size.value
    return Problem(severity, "; ".join(parts) + ".", details)


def _format_source(figure: Figure) -> str:
    return f"{figure.source}, {format_datetime(figure.measured_at)}"
