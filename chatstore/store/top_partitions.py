"""The largest partitions of `messages` and those with the most tombstones, as listed by each replica.

Cassandra updates the lists at full repairs and their previews. A node has two copies: the current one, by nodetool
(which takes the second of a JVM start), and one that it saves hourly, by CQL, at no cost. Lists read by nodetool are
cached in Redis, and the younger copy is used. A list is short and starts at a floor: a partition that is not listed is
smaller than that, or than the last listed one.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from chatstore.domain.errors import NodeUnreachable, StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store import nodes, nodetool
from chatstore.store.cassandra import Row
from chatstore.store.redis import redis_client

TABLE = "messages"

SOURCE = "top partitions"

Bucket = tuple[int, int]
"""(channel id, bucket)."""

_SAVED = (
    "SELECT top_type, last_update, top FROM system.top_partitions WHERE keyspace_name = %s AND table_name = 'messages'"
)
_FLOOR_NAMES = {
    "min_tracked_partition_size": "bytes",
    "min_tracked_partition_tombstone_count": "tombstones",
    "max_top_size_partition_count": "bytes_listed",
    "max_top_tombstone_partition_count": "tombstones_listed",
}
_SETTINGS = f"SELECT name, value FROM system_views.settings WHERE name IN ({', '.join(map(repr, _FLOOR_NAMES))})"
# The JSON output lacks the time at which the lists were updated.
_LISTS = re.compile(r"Top partitions by (size|tombstone count) \(last update: (\S+)\):\n.*\n((?:\s+\S+:-?\d+ +\d+\n)*)")
_LINE = re.compile(r"(\S+) +(\d+)\n")
_AMOUNT = re.compile(r"(\d+)(B|KiB|MiB|GiB|TiB)?")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

CACHE_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Floor:
    """Limits of a node's lists. None: the node did not report it.

    bytes, tombstones: smaller partitions are not listed. bytes_listed, tombstones_listed: maximum entries.
    """

    bytes: int | None = None
    tombstones: int | None = None
    bytes_listed: int | None = None
    tombstones_listed: int | None = None


@dataclass(frozen=True, slots=True)
class TopPartitions:
    """The lists of one node. updated_at: their last update; None if unknown or never.

    read_at: when the node was queried, or saved them. is_live: by nodetool, not the hourly copy.
    """

    host: str
    sizes: Mapping[Bucket, int]
    tombstones: Mapping[Bucket, int]
    updated_at: dt.datetime | None
    read_at: dt.datetime
    floor: Floor = field(default_factory=Floor)
    is_live: bool = True

    def measured_bytes(self, bucket: Bucket) -> int | None:
        """Return the size of a partition that was just measured: 0 if the list would contain it, None if it may be
        below what is listed. Of any other unlisted partition nothing is known, since a restart clears the lists.
        """
        listed = (self.floor.bytes, self.floor.bytes_listed)
        return _value_of(self.sizes, bucket, listed)

    def measured_tombstones(self, bucket: Bucket) -> int | None:
        """Return the tombstones, as `measured_bytes` does the size."""
        listed = (self.floor.tombstones, self.floor.tombstones_listed)
        return _value_of(self.tombstones, bucket, listed)


def _value_of(listed: Mapping[Bucket, int], bucket: Bucket, limits: tuple[int | None, int | None]) -> int | None:
    floor, most = limits
    if bucket in listed or floor is None or most is None:
        return listed.get(bucket)
    return 0 if floor <= 1 and len(listed) < most else None


def max_by_bucket(lists: Iterable[Mapping[Bucket, int]]) -> dict[Bucket, int]:
    """Return the largest value in any of the lists for each bucket: if replicas differ, a read has to process the
    most.
    """
    most: dict[Bucket, int] = {}
    for listed in lists:
        for bucket, value in listed.items():
            most[bucket] = max(value, most.get(bucket, value))
    return most


def read_live(host: str) -> TopPartitions:
    """Return a node's current lists, by nodetool, and cache them. Raises `NodeUnreachable`, `NodetoolFailed`."""
    output = nodetool.run(host, "tablestats", f"{settings.CASSANDRA['keyspace']}.{TABLE}")
    found = {kind: (when, dict(_LINE.findall(lines))) for kind, when, lines in _LISTS.findall(output)}
    if f"Table: {TABLE}" not in output:
        raise NodeUnreachable(_("Node %(node)s: nodetool tablestats returned no statistics.", node=host))
    read = TopPartitions(
        host=host,
        sizes=_read_list(found["size"][1]) if "size" in found else {},
        tombstones=_read_list(found["tombstone count"][1]) if "tombstone count" in found else {},
        updated_at=max((when for text, _ in found.values() if (when := _parse_datetime(text))), default=None),
        read_at=dt.datetime.now(dt.UTC),
        floor=_read_floors([host])[host],
    )
    _cache(read)
    return read


def read_all_live(hosts: Iterable[str]) -> dict[str, TopPartitions | NodeUnreachable]:
    """Run `read_live` for several nodes in parallel."""
    wanted = list(hosts)

    def read(host: str) -> TopPartitions | NodeUnreachable:
        try:
            return read_live(host)
        except NodeUnreachable as error:
            return error

    if not wanted:
        return {}
    with ThreadPoolExecutor(max_workers=min(len(wanted), 8)) as pool:
        return dict(zip(wanted, pool.map(read, wanted), strict=True))


def read_latest() -> dict[str, TopPartitions | NodeUnreachable]:
    """Return, per node, the younger of its saved lists and the cached ones; by CQL alone.

    Raises `StoreUnavailable` if no node responds.
    """
    answers = nodes.query_nodes(_SAVED, (settings.CASSANDRA["keyspace"],))
    floors = _read_floors(answers)
    cached = _read_cached()
    known: dict[str, TopPartitions | NodeUnreachable] = {}
    for host, answer in answers.items():
        saved = answer if isinstance(answer, NodeUnreachable) else _read_saved(host, answer, floors[host])
        live = cached.get(host)
        is_younger = isinstance(saved, TopPartitions) and live is not None and live.read_at > saved.read_at
        known[host] = live if live is not None and is_younger else saved
    return known


def _read_saved(host: str, rows: Iterable[Row], floor: Floor) -> TopPartitions:
    lists: dict[str, Mapping[Bucket, int]] = {}
    times = []
    for kind, updated_at, top in rows:
        lists[kind] = _read_list(dict(top or ()))
        if updated_at is not None:
            times.append(updated_at.replace(tzinfo=dt.UTC))
    updated = max(times, default=None)
    return TopPartitions(
        host=host,
        sizes=lists.get("SIZES", {}),
        tombstones=lists.get("TOMBSTONES", {}),
        updated_at=updated,
        read_at=updated or dt.datetime.min.replace(tzinfo=dt.UTC),
        floor=floor,
        is_live=False,
    )


def _read_list(listed: Mapping[str, int | str]) -> dict[Bucket, int]:
    found = {}
    for key, value in listed.items():
        channel_id, _, bucket = key.rpartition(":")
        try:
            found[int(channel_id), int(bucket)] = int(value)
        except ValueError:
            # Not one of our keys.
            continue
    return found


def _read_floors(hosts: Iterable[str]) -> dict[str, Floor]:
    answers = nodes.query_nodes(_SETTINGS, hosts=list(hosts))
    floors = {}
    for host, answer in answers.items():
        values = {} if isinstance(answer, NodeUnreachable) else {str(name): value for name, value in answer}
        floors[host] = Floor(**{field: _read_amount(values.get(name)) for name, field in _FLOOR_NAMES.items()})
    return floors


def _read_amount(text: object) -> int | None:
    """Parse "10" or "1MiB" as a number."""
    amount = _AMOUNT.fullmatch(str(text))
    return int(amount[1]) * _UNITS[amount[2] or "B"] if amount else None


def _parse_datetime(text: object) -> dt.datetime | None:
    if not isinstance(text, str):
        return None
    try:
        when = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=dt.UTC)


def _key(host: str) -> str:
    return f"top_partitions:{settings.CASSANDRA['keyspace']}:{host}"


def _cache(read: TopPartitions) -> None:
    payload: dict[str, Any] = {
        "sizes": [[*bucket, value] for bucket, value in read.sizes.items()],
        "tombstones": [[*bucket, value] for bucket, value in read.tombstones.items()],
        "updated_at": read.updated_at.isoformat() if read.updated_at else None,
        "read_at": read.read_at.isoformat(),
        "floor": [read.floor.bytes, read.floor.tombstones, read.floor.bytes_listed, read.floor.tombstones_listed],
    }
    try:
        redis_client().set(_key(read.host), json.dumps(payload), ex=CACHE_SECONDS)
    except StoreUnavailable:
        # The node's own hourly copy remains available.
        return


def _read_cached() -> dict[str, TopPartitions]:
    found = {}
    try:
        client = redis_client()
        for host in nodes.list_addresses():
            text = client.get(_key(host))
            if text:
                found[host] = _from_cache(host, json.loads(text))
    except StoreUnavailable:
        return {}
    return found


def _from_cache(host: str, payload: Mapping[str, Any]) -> TopPartitions:
    return TopPartitions(
        host=host,
        sizes={(channel, bucket): value for channel, bucket, value in payload["sizes"]},
        tombstones={(channel, bucket): value for channel, bucket, value in payload["tombstones"]},
        updated_at=_parse_datetime(payload["updated_at"]),
        read_at=dt.datetime.fromisoformat(payload["read_at"]),
        floor=Floor(*payload["floor"]),
    )
