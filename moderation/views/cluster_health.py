"""Cluster health: findings, repair clocks, nodes and statistics, and the actions for the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from chatstore.domain.errors import NotFound
from chatstore.operations.health.cluster_health import read_cluster_health
from chatstore.operations.monitoring.console import JobView, describe_job, describe_stopped_services, open_runs
from chatstore.operations.rights import MAINTAIN, READ_HEALTH
from chatstore.tasks import enqueue_run_on_commit
from moderation.operations.access.maintenance_acts import request_run
from moderation.operations.buckets.charts import SPANS, chart_of_worst, parse_span
from moderation.views.findings import list_findings
from moderation.views.polling import render_live
from moderation.views.session import actor_of

ACTIONS = {"repair": "repair", "raise": "raise_gc_grace", "restore": "restore_gc_grace"}
"""Job by the name in the URL."""

FINDINGS_SHOWN = 100
"""The worst findings. A limit that is set too low can cause thousands."""

READ_PATH_LABELS: dict[str, tuple[Promise, Promise]] = {
    "authorless_hidden": (_("Rows without an author, hidden"), _("left behind by edits that raced a delete")),
    "authorless_healed": (_("Rows without an author, cleaned up"), _("by nightly maintenance")),
    "buckets_skipped": (_("Empty buckets skipped"), _("not read, since they contain no messages")),
    "deadline_reached": (_("Pages cut off by timeout"), _("returned short, with the date they were searched back to")),
    "aborted_by_tombstones": (_("Reads aborted by tombstones"), _("repeated in halves")),
}


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def cluster_health(request: HttpRequest) -> HttpResponse:
    """Show findings, repair clocks, nodes, the worst partitions, and deletes not covered by a repair."""
    health = read_cluster_health(request.user)
    repair = _describe_repair(request)
    findings, other_findings = list_findings(request.user, limit=FINDINGS_SHOWN)
    context = _describe_runs(request) | {
        "health": health,
        "is_down": health.nodes is None and health.clocks is None and health.worst is None,
        "clock": health.messages_clock,
        "findings": findings,
        "other_findings": other_findings,
        "stopped_services": describe_stopped_services(),
        "next_repair": repair.next_slot if repair else None,
        "last_repair": repair.last[-1] if repair and repair.last else None,
        "chart": chart_of_worst(days=parse_span(request.GET.get("days", ""))),
        "spans": SPANS,
        "counts": _describe_counts(health.read_path.counts) if health.read_path else [],
        "may_act": request.user.has_perm(MAINTAIN),
    }
    return render(request, "moderation/health/cluster.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def cluster_live(request: HttpRequest) -> HttpResponse:
    """Return open runs, for htmx to poll; the page reloads once there are none."""
    context = _describe_runs(request)
    return render_live(request, "moderation/health/_cluster_runs.html", context, keep_polling=bool(context["open"]))


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def cluster_action(request: HttpRequest, action: str) -> HttpResponse:
    """Request a repair of all tables, or raise or reset gc_grace. Each is a recorded run."""
    if action not in ACTIONS:
        raise NotFound(gettext("The cluster has no action “%(name)s”.") % {"name": action})
    run = request_run(ACTIONS[action], actor=actor_of(request))
    enqueue_run_on_commit(run.pk)
    return redirect("cluster_health")


def _describe_repair(request: HttpRequest) -> JobView | None:
    try:
        return describe_job(request.user, "repair")
    except NotFound:
        # Installations with another repair tool may have no such job.
        return None


def _describe_runs(request: HttpRequest) -> dict[str, Any]:
    runs = [entry for entry in open_runs(request.user) if entry.run.job in ACTIONS.values()]
    return {"nav": "health", "open": runs}


def _describe_counts(counts: Mapping[str, int]) -> list[tuple[str | Promise, str | Promise, int]]:
    """Return (heading, explanation, total) of each counter."""
    return [(*READ_PATH_LABELS.get(name, (name.replace("_", " "), "")), total) for name, total in counts.items()]
