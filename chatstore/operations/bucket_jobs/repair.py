"""Repairing and measuring one bucket on request, and what the repair of all nodes shares with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chatstore.domain.errors import BadInput, NodeUnreachable
from chatstore.domain.runs import RunState
from chatstore.domain.texts import as_json, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.token_ranges import Repaired
from chatstore.models import JobRun
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import REPAIRED_AT, SEEN_BY_REPAIR
from chatstore.operations.health.measured import show_measured
from chatstore.operations.health.probes import parse_bucket_subject
from chatstore.operations.jobs.runs import Claim, request_automatic_run
from chatstore.operations.ledger.summaries import mark_due
from chatstore.operations.repair_status.repair_clock import (
    MESSAGES,
)
from chatstore.store import figures, nodes, repairs, top_partitions
from chatstore.store.measuring import Measured, measure_bucket
from chatstore.store.repairs import Part

REPAIR_SOURCE = "repair"

POLL_SECONDS = 1.0
"""Interval at which a run reads the progress of its repair and checks whether it may continue."""


def repair_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "repair_bucket" for one bucket of messages ("<channel>:<bucket>"), and measure it afterwards.

    Raises `NodeUnreachable`, `RepairOverlaps`, `RepairFailed`, `BadInput`.
    """
    channel_id, bucket = parse_bucket_subject(claim.run.subject)
    token, replicas = repairs.locate_bucket(channel_id, bucket)
    require_up(replicas)
    repairs.refuse_overlap([MESSAGES])
    repaired = _run_part(claim, Part(replicas[0], (MESSAGES,), token=token), replicas)
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
    mark_due([measured.channel_id])
    show_measured(measured.channel_id)
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


def require_up(hosts: Sequence[str]) -> list[str]:
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


def _run_part(claim: Claim, part: Part, replicas: Sequence[str]) -> Repaired:
    """Repair a bucket and report its progress. Raises as `Repair.finish` and `Claim.report_progress`."""
    claim.report_progress(done=0, total=2, what=describe_part(part))
    with repairs.repairing(part) as repair:
        while not repair.call.wait(POLL_SECONDS):
            table, share = repair.read_progress(replicas)
            claim.report_progress(done=0, total=2, what=describe_part(part, table=table, share=share))
        return repair.finish()


def describe_part(part: Part, *, table: str = "", share: float | None = None) -> str:
    """Return which node and tables are being repaired, and the share that has been compared, if known."""
    tables = (table,) if table else tuple(part.tables)
    if share is None:
        return _("node %(node)s: %(tables)s", node=part.host, tables=tables)
    return _(
        "node %(node)s: %(tables)s, %(percent)s %% compared",
        node=part.host,
        tables=tables,
        # While it runs, it has not compared all.
        percent=min(round(share * 100), 99),
    )
