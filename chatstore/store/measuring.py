"""Measurement of one bucket by Cassandra's own statistics: a repair preview, which changes no data, updates them on
every replica.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from chatstore.domain.errors import NodeUnreachable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.store import nodes, nodetool, top_partitions
from chatstore.store.repairs import MESSAGES, Part, RepairFailed, locate_bucket
from chatstore.store.top_partitions import TopPartitions

PREVIEW_SECONDS = 600.0
"""For the preview of one partition: mostly the start of a JVM, much longer beside a busy compaction."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A bucket's statistics from Cassandra, per replica.

    bytes, tombstones: the value that each replica lists; None if it is below the smallest listed one. in_sync: whether
    all replicas have the same data. errors: replicas that did not respond, with the reason.
    """

    channel_id: int
    bucket: int
    measured_at: dt.datetime
    in_sync: bool
    bytes: Mapping[str, int | None]
    tombstones: Mapping[str, int | None]
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def max_bytes_seen(self) -> int | None:
        """The largest size of any replica; None if none lists the bucket."""
        return _max_known(self.bytes)

    @property
    def max_tombstones_seen(self) -> int | None:
        return _max_known(self.tombstones)

    @property
    def tombstones_apart(self) -> int | None:
        """The largest difference between replicas, a sign of a missing repair. None unless all replicas reported."""
        values = [number for number in self.tombstones.values() if number is not None]
        return max(values) - min(values) if values and len(values) == len(self.tombstones) and not self.errors else None


def _max_known(values: Mapping[str, int | None]) -> int | None:
    return max((number for number in values.values() if number is not None), default=None)


def measure_bucket(channel_id: int, bucket: int) -> Measured:
    """Have the replicas compare one bucket and update their statistics; changes no data and stores nothing.

    Starts two JVMs. Raises `NodeUnreachable` if a replica is down, and `RepairFailed`.
    """
    token, replicas = locate_bucket(channel_id, bucket)
    down = [host for host in nodes.list_down() if host in replicas]
    if down:
        raise NodeUnreachable(
            ngettext_lazy(
                "Node %(nodes)s is down and is a replica of this bucket.",
                "Nodes %(nodes)s are down and are replicas of this bucket.",
                len(down),
                nodes=tuple(down),
            )
        )
    part = Part(replicas[0], (MESSAGES,), token=token, is_preview=True)
    measured_at = dt.datetime.now(dt.UTC)
    try:
        output = nodetool.run(part.host, *part.arguments, timeout=PREVIEW_SECONDS)
    except nodetool.NodetoolFailed as failed:
        raise RepairFailed(_("The replicas could not be compared: %(error)s", error=failed.text)) from failed
    listed = top_partitions.read_all_live(replicas)
    key = (channel_id, bucket)
    answered = {host: lists for host, lists in listed.items() if isinstance(lists, TopPartitions)}
    return Measured(
        channel_id=channel_id,
        bucket=bucket,
        measured_at=measured_at,
        # The exit code is 0 in both cases.
        in_sync="in sync" in output,
        bytes={host: lists.measured_bytes(key) for host, lists in answered.items()},
        tombstones={host: lists.measured_tombstones(key) for host, lists in answered.items()},
        errors={host: lists.text for host, lists in listed.items() if isinstance(lists, NodeUnreachable)},
    )
