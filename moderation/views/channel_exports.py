"""The table of all channels as CSV and as JSON, written while it is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping

from chatstore.operations.health.channel_list import ListedChannel
from moderation.views.exports import Cell, id_as_text, write_csv, write_json


def _time(value: dt.datetime | None) -> str | None:
    return None if value is None else value.astimezone(dt.UTC).isoformat(timespec="seconds")


COLUMNS: Mapping[str, Callable[[ListedChannel], Cell]] = {
    "channel_id": lambda listed: id_as_text(listed.row.pk),
    "channel": lambda listed: listed.channel.name,
    "kind": lambda listed: listed.channel.kind,
    "guild_id": lambda listed: id_as_text(listed.channel.guild_id),
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
    "newest_page_buckets": lambda listed: listed.row.page_buckets,
    "newest_page_measured_at": lambda listed: _time(listed.row.page_at),
    "buckets": lambda listed: listed.row.buckets,
    "empty_buckets": lambda listed: listed.row.empty_buckets,
    "buckets_read_at": lambda listed: _time(listed.row.refreshed_at),
    "uncovered_deletes": lambda listed: listed.row.uncovered_deletes,
    "uncovered_deletes_changed_at": lambda listed: _time(listed.row.uncovered_at),
    "last_purge": lambda listed: id_as_text(listed.row.last_purge_id),
    "last_purged_at": lambda listed: _time(listed.row.last_purged_at),
}


def as_csv(channels: Iterable[ListedChannel]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header; an unknown figure is an empty cell."""
    return write_csv(COLUMNS, channels)


def as_json(channels: Iterable[ListedChannel]) -> Iterator[str]:
    """Yield a JSON array of objects; an unknown figure is null."""
    return write_json(COLUMNS, channels)
