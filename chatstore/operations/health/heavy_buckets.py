"""Check for buckets over a threshold, from the replicas' lists and from the figures of suspect channels.

A channel is suspect if a replica lists one of its buckets, its last known figures or those of the last two days exceed
a limit, many messages were deleted in these days, or a finding is open. The latest of several measurements counts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping

from django.conf import settings
from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from chatstore.domain.buckets import bucket_days, format_bucket
from chatstore.domain.errors import NodeUnreachable
from chatstore.domain.health import SOURCE_LABELS, KnownBucket, Limits, severity_of
from chatstore.domain.runs import Severity
from chatstore.domain.texts import Days, Param, Size, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import BucketDeletes, Channel, ChannelDay, ChannelSummary, Finding
from chatstore.models.maintenance import UNKNOWN_FIRST
from chatstore.operations.findings.channels import HEAVY_BUCKET
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.health.channel_health import SEEN_BY_REPAIR, health_limits, tombstones_in
from chatstore.operations.ledger.summaries import mark_due
from chatstore.store import figures, top_partitions
from chatstore.store.figures import Figure
from chatstore.store.top_partitions import Bucket, TopPartitions

LATELY = dt.timedelta(days=2)

Measured = Mapping[str, Figure]


def check_heavy_buckets(now: dt.datetime) -> None:
    """Monitor check: update the findings of heavy buckets. Raises `StoreUnavailable`."""
    listed = _read_listed()
    channels = {channel_id for channel_id, _ in listed} | _channels_in_question(now)
    sync_findings(HEAVY_BUCKET, _find_heavy(listed, channels))


def check_channel(channel_id: int) -> None:
    """Update the findings of one channel's heavy buckets, as the monitor does. Raises `StoreUnavailable`."""
    listed = {key: found for key, found in _read_listed().items() if key[0] == channel_id}
    own = Q(subject__startswith=f"{channel_id}:")
    sync_findings(HEAVY_BUCKET, _find_heavy(listed, [channel_id]), among=own)


def _read_listed() -> Mapping[Bucket, Measured]:
    """Return what replicas list above a limit."""
    return list_figures(
        top_partitions.read_latest().values(),
        min_tombstones=settings.HEALTH_WARN_TOMBSTONES,
        min_bytes=settings.HEALTH_WARN_BYTES,
    )


def _find_heavy(listed: Mapping[Bucket, Measured], channels: Collection[int]) -> dict[str, Problem]:
    """Return the problems with buckets of channels, by the subject of their findings."""
    heavy: dict[str, Problem] = {}
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
            if changed:
                mark_due([channel_id])
            found = _assess(latest_figures(listed.get((channel_id, bucket), {}), noted))
            if found is not None:
                summary = _(
                    "%(channel)s, %(days)s: %(problem)s",
                    channel=names[channel_id].full_name
                    if channel_id in names
                    else _("Channel %(id)s", id=str(channel_id)),
                    days=Days(*bucket_days(bucket)),
                    problem=found.summary,
                )
                heavy[format_bucket(channel_id, bucket)] = Problem(found.severity, summary, found.details)
    return heavy


def list_figures(
    lists_of_nodes: Iterable[TopPartitions | NodeUnreachable], *, min_tombstones: int = 1, min_bytes: int = 1
) -> Mapping[Bucket, Measured]:
    """Return what replicas list, from some values on. If they differ, the larger one counts, since a read scans it."""
    found: dict[Bucket, dict[str, Figure]] = {}
    for lists in lists_of_nodes:
        if not isinstance(lists, TopPartitions) or lists.updated_at is None:
            continue
        for name, values, limit in (
            (SEEN_BY_REPAIR, lists.tombstones, min_tombstones),
            ("bytes", lists.sizes, min_bytes),
        ):
            for bucket, value in values.items():
                known = found.get(bucket, {}).get(name)
                if value >= limit and (known is None or known.value < value):
                    figure = Figure(value, top_partitions.SOURCE, lists.updated_at)
                    found.setdefault(bucket, {})[name] = figure
    return found


def latest_figures(listed: Measured, noted: Measured) -> Measured:
    """Return the figures of a bucket: those recorded, and those of the lists that are new and later."""
    return {**noted, **_later(_changed_entries(listed, noted), noted)}


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
    # Pages color a bucket by its last known figures, however old. By the indexes that the table is sorted by.
    known_figures = ChannelSummary.objects.alias(
        most_tombstones=Coalesce("tombstones", UNKNOWN_FIRST), most_bytes=Coalesce("bytes", UNKNOWN_FIRST)
    )
    last_known = known_figures.filter(
        Q(most_tombstones__gte=settings.HEALTH_WARN_TOMBSTONES) | Q(most_bytes__gte=settings.HEALTH_WARN_BYTES)
    ).values_list("pk", flat=True)
    deletes = BucketDeletes.objects.filter(last_at__gte=now - LATELY).values("channel_id", "bucket")
    many = deletes.annotate(sum=Sum("deletes")).filter(sum__gte=settings.HEALTH_WARN_TOMBSTONES)
    known = Finding.objects.open().filter(kind=HEAVY_BUCKET).values_list("subject", flat=True)
    measured = days.union(last_known)
    return {
        *measured,
        *many.values_list("channel_id", flat=True),
        *(int(subject.partition(":")[0]) for subject in known),
    }


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
    summaries, details = [], {}
    if tombstones is not None and tombstones.value >= limits.warn_tombstones:
        summaries.append(
            ngettext_lazy(
                "A full read scans %(count)s tombstone (%(source)s, %(time)s).",
                "A full read scans %(count)s tombstones (%(source)s, %(time)s).",
                tombstones.value,
                **_source_of(tombstones),
            )
        )
        details["tombstones"] = tombstones.value
    if size is not None and size.value >= limits.warn_bytes:
        summaries.append(
            _("%(size)s in one partition (%(source)s, %(time)s).", size=Size(size.value), **_source_of(size))
        )
        details["bytes"] = size.value
    if len(summaries) == 1:
        return Problem(severity, summaries[0], details)
    return Problem(severity, _("%(first)s %(second)s", first=summaries[0], second=summaries[1]), details)


def _source_of(figure: Figure) -> dict[str, Param]:
    return {"source": SOURCE_LABELS.get(figure.source, figure.source), "time": figure.measured_at}
