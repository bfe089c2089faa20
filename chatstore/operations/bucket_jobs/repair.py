"""Repair jobs: all nodes every night, or one bucket on request; and measuring a bucket.

Every node in turn repairs its primary ranges (`-pr`), `messages` separately and the small tables together,
always in full, so that each range is compared once. A failed run is retried as configured, and skips
what earlier attempts of that night have repaired, by the history. A run that is stopped or runs out of
hours ends its nodetool and the comparison on the replicas.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from chatstore.domain.errors import BadInput, NodeUnreachable, StoreUnavailable
from chatstore.domain.runs import RunState
from chatstore.domain.texts import as_json, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.token_ranges import Repaired
from chatstore.models import JobRun
from chatstore.models.cassandra import TABLES
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import REPAIRED_AT, SEEN_BY_REPAIR
from chatstore.operations.health.probes import parse_bucket_subject
from chatstore.operations.jobs.runs import Claim, attempts_of, request_automatic_run
from chatstore.operations.ledger.delete_log import prune_deletes
from chatstore.operations.repair_status.gc_grace import restore_after_repair
from chatstore.operations.repair_status.repair_clock import (
    MESSAGES,
    covered_until,
    is_only_copy,
    read_clock,
    read_clocks,
    repaired_by_node,
    report_late_repairs,
)
from chatstore.store import cassandra, figures, nodes, repairs, top_partitions
from chatstore.store.measuring import Measured, measure_bucket
from chatstore.store.repairs import Part
from chatstore.store.top_partitions import TopPartitions

REPAIR_SOURCE = "repair"

POLL_SECONDS = 1.0
"""Interval at which a run reads the progress of its repair and checks whether it may continue."""

TABLE_GROUPS: tuple[tuple[str, ...], ...] = ((MESSAGES,), tuple(table for table in TABLES if table != MESSAGES))
"""Tables per command. Repairing the small tables together saves starting a JVM for each."""


def repair_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "repair": repair all tables on every node; return counts by name.

    Raises `NodeUnreachable` before anything starts if a node is down, `RepairOverlaps`, `RepairFailed`.
    """
    if is_only_copy():
        return {"not needed": "there is only one replica"}
    hosts = _require_up(sorted({host for _, host in cassandra.ring()}))
    repairs.refuse_overlap(list(TABLES))
    since = _first_began_at(claim.run)
    parts = [Part(host, tables) for host in hosts for tables in TABLE_GROUPS]
    already = {part for part in parts if since is not None and _is_repaired(part, since)}
    result: dict[str, Any] = {"nodes": len(hosts), "tables": len(TABLES), "ranges": 0}
    if already:
        result["repaired by an earlier attempt"] = len(already)
    for number, part in enumerate(parts):
        if part in already:
            continue
        repaired = _run_part(claim, part, done=number, total=len(parts))
        result["ranges"] += len(repaired.ranges) * len(part.tables)
        claim.note(result)
    claim.report_progress(done=len(parts), total=len(parts), what=_("reading the figures of the nodes"))
    result["buckets measured"] = _note_listed(hosts)
    return result | _conclude()


def repair_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "repair_bucket" for one bucket of messages ("<channel>:<bucket>"), and measure it afterwards.

    Raises `NodeUnreachable`, `RepairOverlaps`, `RepairFailed`, `BadInput`.
    """
    channel_id, bucket = parse_bucket_subject(claim.run.subject)
    token, replicas = repairs.locate_bucket(channel_id, bucket)
    _require_up(replicas)
    repairs.refuse_overlap([MESSAGES])
    repaired = _run_part(claim, Part(replicas[0], (MESSAGES,), token=token), done=0, total=2)
    noted = {REPAIRED_AT: int(repaired.began_at.timestamp() * 1_000)}
    figures.note_figures(channel_id, bucket, noted, source=REPAIR_SOURCE, measured_at=postgres_now())
    # The figures reported by a repair are from before it streamed anything.
    claim.report_progress(done=1, total=2, what=_("measuring the bucket again"))
    return {"replicas": len(replicas)} | note_measured(measure_bucket(channel_id, bucket))


def measure_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "measure": read Cassandra's own figures of one bucket from every replica, without changes.

    Raises `NodeUnreachable`, `RepairFailed`, `BadInput`.
    """
    channel_id, bucket = parse_bucket_subject(claim.run.subject)
    claim.report_progress(done=0, total=1, what=_("comparing the replicas of the bucket"))
    return note_measured(measure_bucket(channel_id, bucket))


def note_measured(measured: Measured) -> dict[str, Any]:
    """Record the measurements of a bucket; return them by name and replica, as the result of a run."""
    found = {
        "bytes": measured.max_bytes_seen,
        SEEN_BY_REPAIR: measured.max_tombstones_seen,
        "tombstones_apart": measured.tombstones_apart,
    }
    known = {name: value for name, value in found.items() if value is not None}
    figures.note_figures(
        measured.channel_id,
        measured.bucket,
        known,
        source=top_partitions.SOURCE,
        measured_at=measured.measured_at,
    )
    per_replica: dict[str, Any] = {"replicas are": "in sync" if measured.in_sync else "different"}
    for host in measured.tombstones:
        per_replica[f"tombstones on {host}"] = _format_count(measured.tombstones[host])
        per_replica[f"bytes on {host}"] = _format_count(measured.bytes[host])
    return per_replica | {f"no figures from {host}": as_json(error) for host, error in measured.errors.items()}


def start_from_command(job: str, subject: str = "") -> JobRun:
    """Create a run for a management command, which needs no account.

    Raises `BadInput` while another one of the same job and subject is queued or running.
    """
    run = request_automatic_run(job, subject=subject)
    if run is None:
        raise BadInput(_("Such a repair is already queued or running; see the maintenance page."))
    return run


def stop_from_command(run_id: int) -> None:
    """End a run that was interrupted in its own process, so that no worker continues it."""
    stopped = {"state": RunState.STOPPED, "error": _("Stopped at the terminal."), "ended_at": ClockTimestamp()}
    JobRun.objects.filter(pk=run_id).open().update(**stopped, token=None, lease_until=None)


def _format_count(value: int | None) -> int | str:
    return "below the listed minimum" if value is None else value


def _require_up(hosts: Sequence[str]) -> list[str]:
    """Return the hosts if all are up; raise `NodeUnreachable` otherwise."""
    down = [host for host in nodes.list_down() if host in hosts]
    if down:
        raise NodeUnreachable(
            ngettext_lazy(
                "Node %(nodes)s is down, and a repair needs every replica. Nothing was started.",
                "Nodes %(nodes)s are down, and a repair needs every replica. Nothing was started.",
                len(down),
                nodes=tuple(down),
            )
        )
    return list(hosts)


def _run_part(claim: Claim, part: Part, *, done: int, total: int) -> Repaired:
    """Repair a part and report its progress. Raises as `Repair.finish` and `Claim.report_progress`."""
    claim.report_progress(done=done, total=total, what=_describe_part(part))
    with repairs.repairing(part) as repair:
        while not repair.call.wait(POLL_SECONDS):
            table, share = repair.read_progress()
            claim.report_progress(done=done, total=total, what=_describe_part(part, table=table, share=share))
        return repair.finish()


def _describe_part(part: Part, *, table: str = "", share: float | None = None) -> str:
    tables = (table,) if table else tuple(part.tables)
    if share is None:
        return _("node %(node)s: %(tables)s", node=part.host, tables=tables)
    return _(
        "node %(node)s: %(tables)s, %(percent)s %% compared",
        node=part.host,
        tables=tables,
        percent=round(share * 100),
    )


def _first_began_at(run: JobRun) -> dt.datetime | None:
    """Return when the first attempt began of a run that is an automatic retry; None for any other."""
    if run.retry_of is None or run.requested_by_id is not None:
        return None
    return attempts_of(run)[-1].started_at


def _is_repaired(part: Part, since: dt.datetime) -> bool:
    """Return whether a repair that began after `since` has covered a whole part."""
    times = [per_node.get(part.host) for per_node in repaired_by_node(part.tables).values()]
    return all(moment is not None and moment >= since for moment in times)


def _note_listed(hosts: Sequence[str]) -> int:
    """Record the figures of all buckets listed by any node; return how many. Unreachable nodes are skipped."""
    read_at = postgres_now()
    lists = [one for one in top_partitions.read_all_live(hosts).values() if isinstance(one, TopPartitions)]
    sizes = top_partitions.max_by_bucket(one.sizes for one in lists)
    tombstones = top_partitions.max_by_bucket(one.tombstones for one in lists)
    listed = sizes.keys() | tombstones.keys()
    for key in listed:
        measured = {"bytes": sizes.get(key), SEEN_BY_REPAIR: tombstones.get(key)}
        found = {name: value for name, value in measured.items() if value is not None}
        figures.note_figures(*key, found, source=top_partitions.SOURCE, measured_at=read_at)
    return len(listed)


def _conclude() -> dict[str, Any]:
    """After a full repair: prune recorded deletes, restore gc_grace, update the findings of late repairs."""
    concluded: dict[str, Any] = {}
    try:
        clock = read_clock(MESSAGES)
        if clock.began_at is not None:
            # Until gc_grace has passed, they decide when a bucket may be compacted.
            kept_from = clock.now - dt.timedelta(seconds=max(clock.gc_grace_seconds, clock.normal_gc_grace_seconds))
            prune_deletes(min(covered_until(clock.began_at), kept_from))
        if restore_after_repair(clock):
            concluded["gc_grace"] = "restored"
        report_late_repairs(read_clocks())
    except StoreUnavailable as error:
        # The repair itself is complete and recorded; the monitor checks again.
        concluded["afterwards"] = as_json(error.text)
    return concluded
