"""Figures of buckets as measurements leave them."""

from __future__ import annotations

import datetime as dt

from chatstore.operations.coordination.clock import postgres_now
from chatstore.store.figures import note_figures


def note(channel_id: int, bucket: int, *, hours_ago: float = 0, source: str = "probe", **found: int) -> None:
    """Note what a measurement found in a bucket, by the name of the figure."""
    note_figures(channel_id, bucket, found, source=source, measured_at=postgres_now() - dt.timedelta(hours=hours_ago))
