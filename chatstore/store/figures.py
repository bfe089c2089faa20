"""Figures measured for a bucket, each with its source and time. Unknown is never 0."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from chatstore.store import cassandra

_INSERT = (
    "INSERT INTO bucket_figures (channel_id, bucket, figure, value, source, measured_at) "
    "VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
)
_SELECT = "SELECT bucket, figure, value, source, measured_at FROM bucket_figures WHERE channel_id = ?"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number, its source ("own read", "top partitions" …) and time."""

    value: int
    source: str
    measured_at: dt.datetime


def note_figures(
    channel_id: int, bucket: int, figures: Mapping[str, int], *, source: str, measured_at: dt.datetime
) -> None:
    """Store figures of a bucket. An older measurement that arrives later has no effect."""
    stamp = int(measured_at.timestamp() * 1_000_000)
    rows = [(channel_id, bucket, name, value, source, measured_at, stamp) for name, value in figures.items()]
    if rows:
        cassandra.execute_batches(_INSERT, [rows])


def read_figures(channel_id: int) -> dict[int, dict[str, Figure]]:
    """Return every figure of a channel, by bucket and name."""
    found: dict[int, dict[str, Figure]] = {}
    for bucket, name, value, source, measured_at in cassandra.execute(_SELECT, (channel_id,)):
        figure = Figure(value, source, measured_at.replace(tzinfo=dt.UTC))
        found.setdefault(bucket, {})[name] = figure
    return found
