"""Health of the cluster or of a channel as plain values, for the terminal and as JSON for scripts.

Parts that could not be read are reported under "errors" and are null.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from chatstore.domain.buckets import bucket_days
from chatstore.domain.errors import NotFound, StoreUnavailable
from chatstore.domain.repair_clocks import RepairClock
from chatstore.domain.runs import Severity
from chatstore.domain.texts import format_date_range
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import open_findings
from chatstore.operations.health.channel_health import (
    BucketHealth,
    read_channel_health,
    with_repair_history,
)
from chatstore.operations.health.cluster_health import read_worst
from chatstore.operations.repair_status.repair_clock import read_clocks
from chatstore.operations.repair_status.rounds import read_round
from chatstore.store import nodes
from chatstore.store.figures import Figure

Report = dict[str, Any]
T = TypeVar("T")

MAX_WORST_PARTITIONS = 10


def report_cluster() -> Report:
    """Return findings, repair clocks, nodes and the worst partitions. ok: no critical finding is open."""
    report: Report = {"errors": []}
    found = open_findings()
    report["findings"] = [_finding(finding) for finding in found]
    report["ok"] = all(finding.severity != Severity.CRITICAL for finding in found)
    clocks = _read_part(report, read_clocks)
    report["repair_clocks"] = None if clocks is None else [_clock(clock) for clock in clocks]
    report["repair_round"] = None if clocks is None else _round(clocks)
    report["nodes"] = _read_part(report, _nodes)
    report["worst_partitions"] = _read_part(report, lambda: _worst_partitions(report["errors"]))
    return report


def report_channel(channel_id: int) -> Report:
    """Return a channel and its buckets, oldest first. ok: as for the cluster. Raises `NotFound`, `StoreUnavailable`."""
    channel = Channel.objects.select_related("guild").filter(pk=channel_id).first()
    if channel is None:
        raise NotFound(_("Channel %(id)s does not exist.", id=str(channel_id)))
    health = read_channel_health(None, channel_id)
    written = [entry for entry in health.buckets if entry.was_written]
    return {
        "channel": str(channel_id),
        "name": channel.full_name,
        "state": health.state.name.lower(),
        "messages": health.messages,
        "uncounted_buckets": health.uncounted,
        "newest_page": {name: _figure(figure) for name, figure in health.newest_page.items()},
        "last_full_repair": _format_datetime(health.last_repair_at),
        "findings": [_finding(finding) for finding in health.findings],
        "buckets": [_bucket(entry) for entry in with_repair_history(channel_id, written)],
        "ok": all(finding.severity != Severity.CRITICAL for finding in health.findings),
    }


def _read_part(report: Report, read: Callable[[], list[T]]) -> list[T] | None:
    try:
        return read()
    except StoreUnavailable as error:
        report["errors"].append(str(error))
        return None


def _clock(clock: RepairClock) -> Report:
    return {
        "table": clock.table,
        "state": clock.state.value,
        "last_full_repair": _format_datetime(clock.began_at),
        "counts_from": _format_datetime(clock.counts_from),
        "gc_grace_hours": round(clock.gc_grace_seconds / 3_600, 1),
        "hours_left": round(clock.hours_left, 1),
    }


def _round(clocks: Sequence[RepairClock]) -> Report | None:
    """Return the current round of repairs, or the last one; None if none has begun."""
    found = read_round(clocks[0].now, clocks)
    if found is None:
        return None
    return {
        "began_at": _format_datetime(found.began_at),
        "nodes": found.nodes,
        "repaired": found.repaired,
        "complete": found.is_complete,
        "expected_end": _format_datetime(found.ends_at),
    }


def _nodes() -> list[Report]:
    return [
        {
            "address": node.address,
            "up": None if node.is_up is None else node.is_up and not node.error,
            "load_bytes": node.load_bytes,
            "compactions_waiting": node.compactions_waiting,
            "error": node.error,
        }
        for node in nodes.read_nodes()
    ]


def _worst_partitions(errors: list[str]) -> list[Report]:
    """Return the worst partitions by tombstones, then by size, as listed by the replica with the most."""
    worst = read_worst(postgres_now())
    errors += worst.errors.values()
    ranked = {(one.channel_id, one.bucket): one for one in (*worst.by_tombstones, *worst.by_size)}
    return [
        {
            "channel": str(one.channel_id),
            "name": str(one.channel or f"channel {one.channel_id}"),
            "bucket": one.bucket,
            "days": format_date_range(*bucket_days(one.bucket)),
            "tombstones": one.tombstones,
            "bytes": one.bytes,
        }
        for one in list(ranked.values())[:MAX_WORST_PARTITIONS]
    ]


def _finding(finding: Finding) -> Report:
    return {
        "kind": finding.kind,
        "subject": finding.subject,
        "severity": Severity(finding.severity).name.lower(),
        "summary": finding.summary,
        "since": _format_datetime(finding.opened_at),
    }


def _bucket(entry: BucketHealth) -> Report:
    return {
        "bucket": entry.bucket,
        "days": format_date_range(entry.first_day, entry.last_day),
        "state": entry.state.value,
        "severity": None if entry.severity is None else entry.severity.name.lower(),
        "messages": entry.messages,
        "tombstones": entry.known.tombstones,
        "dead_percent": None if entry.dead_percent is None else round(entry.dead_percent, 1),
        "bytes": entry.known.bytes,
        "is_skipped": entry.known.is_skipped,
        "last_full_repair": _format_datetime(entry.repaired_at),
        "figures": {name: _figure(figure) for name, figure in entry.figures.items()},
    }


def _figure(figure: Figure) -> Report:
    return {"value": figure.value, "source": figure.source, "measured_at": _format_datetime(figure.measured_at)}


def _format_datetime(time: dt.datetime | None) -> str | None:
    return None if time is None else time.astimezone(dt.UTC).isoformat(timespec="seconds")
