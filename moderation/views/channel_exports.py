"""The table of all channels as CSV and as JSON, written while it is read."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from chatstore.operations.health.channel_list import ListedChannel

ROWS_PER_CHUNK = 100
"""Rows that are sent together."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Characters at which a spreadsheet takes a cell for a formula."""

Cell = str | int | None


def _id(value: int | None) -> str | None:
    """Return an ID as text: it has more digits than a number in JavaScript."""
    return None if value is None else str(value)


def _time(value: dt.datetime | None) -> str | None:
    return None if value is None else value.astimezone(dt.UTC).isoformat(timespec="seconds")


COLUMNS: Mapping[str, Callable[[ListedChannel], Cell]] = {
    "channel_id": lambda listed: _id(listed.row.pk),
    "channel": lambda listed: listed.channel.name,
    "kind": lambda listed: listed.channel.kind,
    "guild_id": lambda listed: _id(listed.channel.guild_id),
    "guild": lambda listed: None if listed.channel.guild is None else listed.channel.guild.name,
    "state": lambda listed: listed.state.name.lower(),
    "severity": lambda listed: None if listed.severity is None else listed.severity.name.lower(),
    "tombstones": lambda listed: listed.row.tombstones,
    "tombstones_bucket": lambda listed: listed.row.tombstones_bucket,
    "tombstones_measured_at": lambda listed: _time(listed.row.tombstones_at),
    "bytes": lambda listed: listed.row.bytes,
    "bytes_bucket": lambda listed: listed.row.bytes_bucket,
    "bytes_measured_at": lambda listed: _time(listed.row.bytes_at),
    "newest_page_us": lambda listed: listed.row.page_us,
    "newest_page_rows": lambda listed: listed.row.page_rows,
    "newest_page_tombstones": lambda listed: listed.row.page_tombstones,
    "newest_page_measured_at": lambda listed: _time(listed.row.page_at),
    "buckets": lambda listed: listed.row.buckets,
    "empty_buckets": lambda listed: listed.row.empty_buckets,
    "buckets_read_at": lambda listed: _time(listed.row.refreshed_at),
    "uncovered_deletes": lambda listed: listed.row.uncovered_deletes,
    "uncovered_deletes_changed_at": lambda listed: _time(listed.row.uncovered_at),
    "last_purge": lambda listed: _id(listed.row.last_purge_id),
    "last_purged_at": lambda listed: _time(listed.row.last_purged_at),
}
"""Columns by name. Names are an interface: scripts read them."""


def as_csv(channels: Iterable[ListedChannel]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header; an unknown figure is an empty cell."""
    yield _lines([COLUMNS])
    cells = ([defuse(read(listed)) for read in COLUMNS.values()] for listed in channels)
    while some := list(islice(cells, ROWS_PER_CHUNK)):
        yield _lines(some)


def as_json(channels: Iterable[ListedChannel]) -> Iterator[str]:
    """Yield a JSON array of objects; an unknown figure is null."""
    rows = (json.dumps({name: read(listed) for name, read in COLUMNS.items()}) for listed in channels)
    yield "["
    separator = "\n"
    while some := list(islice(rows, ROWS_PER_CHUNK)):
        yield separator + ",\n".join(some)
        separator = ",\n"
    yield "\n]\n"


def defuse(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def _lines(rows: Iterable[Iterable[Cell]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
