"""Metrics of moderation for a monitoring system, in addition to those of the store."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count

from chatstore.operations.health.metrics import Metric, read_metrics
from moderation.domain.states import PurgeState
from moderation.models import Purge


def read_all_metrics() -> Iterator[Metric]:
    """Yield the metrics of the store and of moderation."""
    yield from read_metrics()
    yield _purges()


def _purges() -> Metric:
    counted = Purge.objects.filter(is_rewrite=False).order_by().values("state").annotate(count=Count("id"))
    counts = {row["state"]: row["count"] for row in counted}
    samples = [((state.value,), counts.get(state, 0)) for state in PurgeState]
    return Metric("chatstore_purges", "Purges by their state.", ("state",), samples)
