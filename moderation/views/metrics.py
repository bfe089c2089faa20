"""Metrics in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from chatstore.operations.rights import READ_HEALTH
from moderation.operations.purging.metrics import read_all_metrics

_FAMILIES = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}


# A scraper has no session but a token. Without either, the response contains nothing.
@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Serve the metrics to bearers of the token and to operators."""
    if not _may_read(request):
        return HttpResponse("Permission denied.\n", status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry()
    registry.register(_Now())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    token = settings.METRICS_TOKEN
    if token and constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}"):
        return True
    return request.user.has_perm(READ_HEALTH)


class _Now(Collector):
    """The metrics at the time of the request: every process returns the same, since none keeps figures of its own."""

    def collect(self) -> Iterator[Metric]:
        for metric in read_all_metrics():
            family = _FAMILIES[metric.kind](metric.name, metric.help_text, labels=metric.labels)
            for labels, value in metric.samples:
                family.add_metric(labels, value)
            yield family

    def describe(self) -> Iterator[Metric]:
        """Return nothing: registration would otherwise query every store once more."""
        return iter(())
