"""What a monitoring system scrapes of the store and its maintenance. What cannot be said is left out, never 0."""

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
from chatstore.store.heartbeats import BEAT, WATCH, count_bells, seconds_since

logger = logging.getLogger(__name__)


CLOCKS_FOR = dt.timedelta(minutes=1)
"""How long the repair clocks are kept: each is several reads, and they move by the hour."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its samples: (values of the labels, value). A counter's name ends in `_total` when scraped."""

    name: str
    words: str
    labels: Sequence[str]
    samples: Sequence[tuple[Sequence[str], float]]
    kind: Literal["gauge", "counter"] = "gauge"


@dataclass(slots=True)
class _Clocks:
    """The repair clocks as this process read them last."""

    read_at: dt.datetime | None = None
    samples: Sequence[tuple[Sequence[str], float]] = ()


_clocks = _Clocks()


def read_metrics() -> Iterator[Metric]:
    """Everything that chatstore knows; a part whose store does not answer is missing."""
    return read_parts((_findings, _runs, _successes, _signs_of_life, _bells, _nodes, _repairs, _read_path))


def read_parts(parts: Iterable[Callable[[], Iterable[Metric]]]) -> Iterator[Metric]:
    """Each part's metrics, without those that cannot be read now."""
    for part in parts:
        try:
            yield from list(part())
        except StoreUnavailable as error:
            logger.warning("metrics without %s: %s", part.__name__.strip("_"), error)


def _findings() -> Iterator[Metric]:
    counted = Finding.objects.filter(closed_at=None).order_by().values("severity").annotate(count=Count("id"))
    counts = {row["severity"]: row["count"] for row in counted}
    samples = [((severity.name.lower(),), counts.get(severity, 0)) for severity in Severity]
    yield Metric("chatstore_findings", "Findings that are open.", ("severity",), samples)


def _runs() -> Iterator[Metric]:
    counted = JobRun.objects.order_by("job", "state").values("job", "state").annotate(count=Count("id"))
    samples = [((row["job"], row["state"]), row["count"]) for row in counted]
    yield Metric(
        "chatstore_runs", "Runs of maintenance jobs that are kept, by their state now.", ("job", "state"), samples
    )


def _successes() -> Iterator[Metric]:
    now = postgres_now()
    names = [job.name for job in list_jobs() if job.schedule is not None]
    done = JobRun.objects.filter(job__in=names, subject="", state=RunState.DONE, ended_at__isnull=False)
    ended = done.order_by("job").values("job").annotate(at=Max("ended_at"))
    samples = [((row["job"],), (now - row["at"]).total_seconds()) for row in ended]
    yield Metric(
        "chatstore_job_last_success_age_seconds", "Seconds since a job's last run ended well.", ("job",), samples
    )


def _signs_of_life() -> Iterator[Metric]:
    for name, words in ((BEAT, "Seconds since beat was last seen."), (WATCH, "Seconds since the watch last looked.")):
        since = seconds_since(name)
        if since is not None:
            yield Metric(f"chatstore_{name}_age_seconds", words, (), [((), since)])


def _bells() -> Iterator[Metric]:
    samples = [((queue,), count) for queue, count in count_bells().items()]
    yield Metric("chatstore_queue_depth", "Tasks that wait for a worker.", ("queue",), samples)


def _nodes() -> Iterator[Metric]:
    samples = [
        ((address, datacenter), float(is_up)) for address, is_up, datacenter in nodes.list_states() if is_up is not None
    ]
    yield Metric("chatstore_node_up", "Whether a node is known to be up.", ("node", "datacenter"), samples)


def _repairs() -> Iterator[Metric]:
    now = postgres_now()
    if _clocks.read_at is None or now - _clocks.read_at > CLOCKS_FOR:
        _clocks.samples = [((clock.table,), clock.share) for clock in read_clocks(now)]
        _clocks.read_at = now
    words = "How much of gc_grace has passed since the first delete that no repair covers; 1: too late."
    yield Metric("chatstore_repair_clock_share", words, ("table",), _clocks.samples)


def _read_path() -> Iterator[Metric]:
    samples = [((event,), count) for event, count in counters.read_all().items()]
    yield Metric("chatstore_read_path", "What reading pages met, over all processes.", ("event",), samples, "counter")
