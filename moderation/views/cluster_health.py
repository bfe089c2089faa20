"""Cluster health: what an operator opens in the morning, and the few things to be done about all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.errors import NotFound
from chatstore.operations.health.cluster_health import read_cluster_health
from chatstore.operations.jobs.runs import ask_run
from chatstore.operations.monitoring.console import JobView, describe_job, open_runs
from chatstore.operations.rights import MAINTAIN, READ_HEALTH
from chatstore.tasks import ring_run_on_commit
from moderation.operations.buckets.charts import chart_of_worst
from moderation.views.findings import list_findings
from moderation.views.polling import render_live
from moderation.views.session import actor_of

ACTS = {"repair": "repair", "raise": "raise_gc_grace", "restore": "restore_gc_grace"}
"""Address to job."""

FINDINGS_SHOWN = 100
"""The worst of them; with a limit set too low there may be thousands."""

READ_PATH_WORDS = {
    "authorless_hidden": ("Edits that raced a delete, hidden", "rows without an author that pages left out"),
    "authorless_healed": ("… and removed", "by the nightly maintenance"),
    "buckets_skipped": ("Empty buckets passed by", "pages did not ask them, since nothing lives there"),
    "deadline_reached": ("Pages at their deadline", "returned short, with “looked back to”"),
    "aborted_by_tombstones": ("Reads aborted by tombstones", "asked again in halves"),
}


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def cluster_health(request: HttpRequest) -> HttpResponse:
    """Findings, repair clocks, nodes, the worst partitions, what no repair covers."""
    health = read_cluster_health(request.user)
    repair = _describe_repair(request)
    findings = list_findings(request.user)
    context = _describe_runs(request) | {
        "health": health,
        "clock": health.messages_clock,
        "findings": findings[:FINDINGS_SHOWN],
        "other_findings": len(findings[FINDINGS_SHOWN:]),
        "next_repair": repair.next_slots[0] if repair and repair.next_slots else None,
        "last_repair": repair.last[-1] if repair and repair.last else None,
        "chart": chart_of_worst(),
        "counts": _describe_counts(health.read_path.counts) if health.read_path else [],
        "may_act": request.user.has_perm(MAINTAIN),
    }
    return render(request, "cluster_health.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def cluster_live(request: HttpRequest) -> HttpResponse:
    """What is at work, for htmx to fetch again; the whole page anew once nothing is."""
    context = _describe_runs(request)
    return render_live(request, "_cluster_runs.html", context, goes_on=bool(context["open"]))


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def cluster_act(request: HttpRequest, act: str) -> HttpResponse:
    """Repairs everything, raises gc_grace or puts it back: each a run that is recorded."""
    if act not in ACTS:
        raise NotFound(f"There is nothing called {act!r} to do with the cluster.")
    run = ask_run(ACTS[act], actor=actor_of(request))
    ring_run_on_commit(run.pk)
    return redirect("cluster_health")


def _describe_repair(request: HttpRequest) -> JobView | None:
    try:
        return describe_job(request.user, "repair")
    except NotFound:
        # Where something else repairs, settings may have no such job.
        return None


def _describe_runs(request: HttpRequest) -> dict[str, Any]:
    runs = [entry for entry in open_runs(request.user) if entry.run.job in ACTS.values()]
    return {"nav": "health", "open": runs}


def _describe_counts(counts: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """(heading, words, total) of each counter."""
    return [(*READ_PATH_WORDS.get(name, (name.replace("_", " "), "")), total) for name, total in counts.items()]
