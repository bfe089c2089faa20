"""Metrics of moderation for a monitoring system, in addition to those of the store."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count

from chatstore.operations.health.metrics import Metric, read_metrics
from moderation.domain.states import UNFINISHED_PURGES
from moderation.models import Purge


def read_all_metrics() -> Iterator[Metric]:
    """Yield the metrics of the store and of moderation."""
    yield from read_metrics()
    yield _purges()


def _purges() -> Metric:
    unfinished = Purge.objects.filter(is_rewrite=False, state__in=UNFINISHED_PURGES).order_by()
    counts = {row["state"]: row["count"] for row in unfinished.values("state").annotate(count=Count("id"))}
    samples = [((state.value,), counts.get(state, 0)) for state in sorted(UNFINISHED_PURGES)]
    return Metric("chatstore_purges", "Purges that have not ended, by their state.", ("state",), samples)
