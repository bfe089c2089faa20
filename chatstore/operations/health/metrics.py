"""Metrics of the store and its maintenance for Prometheus. Values that cannot be read are omitted, never 0."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from django.db.models import Count, Max

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.runs import RunState, Severity
from chatstore.models import Finding, JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.definitions import list_jobs
from chatstore.operations.repair_status.repair_clock import read_clocks
from chatstore.store import counters, nodes
from chatstore.store.heartbeats import BEAT, MONITOR, queue_depths, seconds_since_heartbeat

logger = logging.getLogger(__name__)


CLOCKS_CACHE_TTL = dt.timedelta(minutes=1)
"""Cache lifetime of the repair clocks: each takes several reads, and they change by the hour."""

RUNS_WITHIN = dt.timedelta(days=1)
"""Runs that were due within this time are counted."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric with its samples: (label values, value). The name of a counter gets `_total` appended when scraped."""

    name: str
    help_text: str
    labels: Sequence[str]
    samples: Sequence[tuple[Sequence[str], float]]
    kind: Literal["gauge", "counter"] = "gauge"


@dataclass(slots=True)
class _Clocks:
    """Repair clocks as last read by this process."""

    read_at: dt.datetime | None = None
    samples: Sequence[tuple[Sequence[str], float]] = ()


_clocks = _Clocks()


def read_metrics() -> Iterator[Metric]:
    """Yield all metrics of chatstore; a part whose store is unavailable is omitted."""
    return read_parts((_findings, _runs, _successes, _heartbeats, _queue_depths, _nodes, _repairs, _read_path))


def read_parts(parts: Iterable[Callable[[], Iterable[Metric]]]) -> Iterator[Metric]:
    """Yield the metrics of each part, without parts that cannot be read."""
    for part in parts:
        try:
            yield from list(part())
        except StoreUnavailable as error:
            logger.warning("metrics omit %s: %s", part.__name__.strip("_"), error)


def _findings() -> Iterator[Metric]:
    counted = Finding.objects.open().order_by().values("severity").annotate(count=Count("id"))
    counts = {row["severity"]: row["count"] for row in counted}
    samples = [((severity.name.lower(),), counts.get(severity, 0)) for severity in Severity]
    yield Metric("chatstore_findings", "Open findings.", ("severity",), samples)


def _runs() -> Iterator[Metric]:
    # Counting the whole history at every scrape would take longer every day.
    lately = JobRun.objects.filter(job__in=[job.name for job in list_jobs()], due_at__gte=postgres_now() - RUNS_WITHIN)
    counted = lately.order_by("job", "state").values("job", "state").annotate(count=Count("id"))
    samples = [((row["job"], row["state"]), row["count"]) for row in counted]
    yield Metric(
        "chatstore_runs",
        "Runs of maintenance jobs that were due in the last 24 hours, by current state.",
        ("job", "state"),
        samples,
    )


def _successes() -> Iterator[Metric]:
    now = postgres_now()
    names = [job.name for job in list_jobs() if job.schedule is not None]
    done = JobRun.objects.filter(job__in=names, subject="", state=RunState.DONE, ended_at__isnull=False)
    ended = done.order_by("job").values("job").annotate(at=Max("ended_at"))
    samples = [((row["job"],), (now - row["at"]).total_seconds()) for row in ended]
    yield Metric(
        "chatstore_job_last_success_age_seconds", "Seconds since the last successful run of a job.", ("job",), samples
    )


def _heartbeats() -> Iterator[Metric]:
    for name, help_text in (
        (BEAT, "Seconds since the last heartbeat of beat."),
        (MONITOR, "Seconds since the monitor last ran its checks."),
    ):
        since = seconds_since_heartbeat(name)
        if since is not None:
            yield Metric(f"chatstore_{name}_age_seconds", help_text, (), [((), since)])


def _queue_depths() -> Iterator[Metric]:
    samples = [((queue,), count) for queue, count in queue_depths().items()]
    yield Metric("chatstore_queue_depth", "Tasks waiting for a worker.", ("queue",), samples)


def _nodes() -> Iterator[Metric]:
    samples = [
        ((address, datacenter), float(is_up)) for address, is_up, datacenter in nodes.list_states() if is_up is not None
    ]
    yield Metric("chatstore_node_up", "Whether a node is known to be up.", ("node", "datacenter"), samples)


def _repairs() -> Iterator[Metric]:
    now = postgres_now()
    if _clocks.read_at is None or now - _clocks.read_at > CLOCKS_CACHE_TTL:
        _clocks.samples = [((clock.table,), clock.share) for clock in read_clocks(now)]
        _clocks.read_at = now
    help_text = "Share of gc_grace that has passed since the first delete that no repair covers; 1 is too late."
    yield Metric("chatstore_repair_clock_share", help_text, ("table",), _clocks.samples)


def _read_path() -> Iterator[Metric]:
    samples = [((event,), count) for event, count in counters.read_all().items()]
    yield Metric(
        "chatstore_read_path", "Events while reading pages, over all processes.", ("event",), samples, "counter"
    )
