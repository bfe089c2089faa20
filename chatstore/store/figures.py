"""Figures measured for a bucket, each with its source and time. Unknown is never 0."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from chatstore.domain.buckets import BucketKey
from chatstore.store import cassandra

_INSERT = (
    "INSERT INTO bucket_figures (channel_id, bucket, figure, value, source, measured_at) "
    "VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
)
_SELECT = "SELECT bucket, figure, value, source, measured_at FROM bucket_figures WHERE channel_id = ?"
_SELECT_BETWEEN = f"{_SELECT} AND bucket >= ? AND bucket <= ?"


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
    note_figures_in({(channel_id, bucket): figures}, source=source, measured_at=measured_at)


def note_figures_in(figures: Mapping[BucketKey, Mapping[str, int]], *, source: str, measured_at: dt.datetime) -> None:
    """Store figures of many buckets, as `note_figures` does for one."""
    stamp = int(measured_at.timestamp() * 1_000_000)
    batches: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for key, found in figures.items():
        batches[key[0]] += ((*key, name, value, source, measured_at, stamp) for name, value in found.items())
    cassandra.execute_batches(_INSERT, (rows for rows in batches.values() if rows))


def read_figures(channel_id: int) -> dict[int, dict[str, Figure]]:
    """Return every figure of a channel, by bucket and name."""
    return {bucket: found for (_, bucket), found in read_figures_in([channel_id]).items()}


def read_figure_in(spans: Mapping[int, tuple[int, int]], name: str) -> dict[BucketKey, Figure]:
    """Return one figure of each bucket that has it. spans: the first and the last bucket, inclusive, by channel."""
    answers = cassandra.execute_window((_SELECT_BETWEEN, (channel_id, *span)) for channel_id, span in spans.items())
    return {
        (channel_id, bucket): _figure_of(*columns)
        for channel_id, rows in zip(spans, answers, strict=True)
        for bucket, found, *columns in rows
        if found == name
    }


def read_figures_of(keys: Collection[BucketKey]) -> dict[BucketKey, dict[str, Figure]]:
    """Return every figure of some buckets, by name; {} of one without any."""
    answers = cassandra.execute_window((_SELECT_BETWEEN, (channel_id, bucket, bucket)) for channel_id, bucket in keys)
    return {
        key: {name: _figure_of(*columns) for _bucket, name, *columns in rows}
        for key, rows in zip(keys, answers, strict=True)
    }


def read_figures_in(channel_ids: Collection[int]) -> dict[BucketKey, dict[str, Figure]]:
    """Return every figure of some channels, by channel and bucket, and name."""
    answers = cassandra.execute_window((_SELECT, (channel_id,)) for channel_id in channel_ids)
    found: dict[BucketKey, dict[str, Figure]] = {}
    for channel_id, rows in zip(channel_ids, answers, strict=True):
        for bucket, name, value, source, measured_at in rows:
            found.setdefault((channel_id, bucket), {})[name] = _figure_of(value, source, measured_at)
    return found


def _figure_of(value: int, source: str, measured_at: dt.datetime) -> Figure:
    """Return a figure of a row, whose time is naive, in UTC."""
    return Figure(value, source, measured_at.replace(tzinfo=dt.UTC))
