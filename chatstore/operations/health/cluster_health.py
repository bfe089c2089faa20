"""Health of the cluster: repair clocks, nodes, worst partitions, and deletes that no repair covers.

Each part is read separately, so that a part that is unavailable does not hide the others; it reports the
reason instead. Nothing here starts nodetool: lists of partitions come from the cache.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models.functions import Coalesce

from chatstore.domain.buckets import BucketKey, bucket_days
from chatstore.domain.errors import NodeUnreachable, StoreUnavailable
from chatstore.domain.health import KnownBucket, severity_of
from chatstore.domain.repair_clocks import RepairClock
from chatstore.domain.repair_rounds import RepairRound
from chatstore.domain.runs import Severity
from chatstore.models import Channel, ChannelSummary
from chatstore.models.maintenance import UNKNOWN_FIRST
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import STALE_AFTER, health_limits, tombstones_in
from chatstore.operations.health.heavy_buckets import latest_figures, list_figures
from chatstore.operations.repair_status.repair_clock import read_clocks
from chatstore.operations.repair_status.rounds import read_round
from chatstore.operations.rights import READ_HEALTH, require, restrict, scope_for
from chatstore.store import counters, figures, nodes, repairs, top_partitions
from chatstore.store.figures import Figure
from chatstore.store.nodes import Node
from chatstore.store.top_partitions import TopPartitions

MAX_WORST_PARTITIONS = 10
"""Maximum number of partitions per list."""

MAX_UNCOVERED_CHANNELS = 10
"""Maximum number of channels with deletes that no repair covers."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Partition:
    """Bucket of messages with its latest figures, which are those of its page and of findings.

    bytes, tombstones: None if they were never measured. per_replica: tombstones that each replica lists; None: it does
    not list it, which proves nothing, since its list is lost in a restart. severity: by the measure of the list that
    it is in. figure: that measure, with its source and time.
    """

    channel_id: int
    bucket: int
    channel: Channel | None
    bytes: int | None
    tombstones: int | None
    per_replica: Mapping[str, int | None]
    severity: Severity | None
    figure: Figure | None = None

    @property
    def first_day(self) -> dt.date:
        return bucket_days(self.bucket)[0]

    @property
    def last_day(self) -> dt.date:
        return bucket_days(self.bucket)[1]

    @property
    def is_listed(self) -> bool:
        """Return whether its figure is what the replicas list; a later measurement may differ from their lists."""
        return self.figure is not None and self.figure.source == top_partitions.SOURCE

    @property
    def replica_difference(self) -> int | None:
        """Difference between the tombstones of the replicas; None unless all of them list the bucket."""
        counts = [value for value in self.per_replica.values() if value is not None]
        return max(counts) - min(counts) if len(counts) == len(self.per_replica) > 0 else None


@dataclass(frozen=True, slots=True)
class Listing:
    """Source of `Partition`: when the lists of a node were filled, and the floors below which they omit partitions."""

    host: str
    updated_at: dt.datetime | None
    is_live: bool
    floor_tombstones: int | None
    floor_bytes: int | None
    is_stale: bool


@dataclass(frozen=True, slots=True)
class WorstPartitions:
    """Partitions with the most tombstones or bytes, of those that replicas list and each channel's worst by the same.

    They are ordered by their latest figures. errors: unreachable nodes, with the reason.
    """

    by_tombstones: Sequence[Partition] = ()
    by_size: Sequence[Partition] = ()
    listings: Sequence[Listing] = ()
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UncoveredChannel:
    """Deletes in a channel that no repair covers yet."""

    channel_id: int
    channel: Channel | None
    deletes: int


@dataclass(frozen=True, slots=True)
class ReadPath:
    """Read statistics by name, counted since `since` (None: nothing was counted yet)."""

    counts: Mapping[str, int]
    since: dt.datetime | None


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """Health of the cluster. A part that is None could not be read; `missing` gives the reason by name of the part.

    repair_round: None also if no run has begun one.
    """

    now: dt.datetime
    nodes: Sequence[Node] | None
    clocks: Sequence[RepairClock] | None
    repair_round: RepairRound | None
    worst: WorstPartitions | None
    uncovered: Sequence[UncoveredChannel] | None
    read_path: ReadPath | None
    missing: Mapping[str, str]

    @property
    def messages_clock(self) -> RepairClock | None:
        """Clock of the table that purges wait for."""
        return self.clocks[0] if self.clocks else None

    @property
    def nodes_up(self) -> int:
        return sum(node.is_up is True for node in self.nodes or ())

    @property
    def nodes_unknown(self) -> int:
        return sum(node.is_up is None for node in self.nodes or ())


def read_cluster_health(user: AbstractUser | AnonymousUser | None, *, is_brief: bool = False) -> ClusterHealth:
    """Return the current health of the cluster. user: None for commands. Raises `Forbidden`.

    is_brief: only nodes, worst partitions, and the clocks of tables that are deleted from; the others are None and have
    no reason.
    """
    if user is not None:
        require(user, READ_HEALTH)
    now = postgres_now()
    missing: dict[str, str] = {}

    def try_read(part: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except StoreUnavailable as error:
            missing[part] = error.text
            return None

    found_nodes = try_read("nodes", nodes.read_nodes)
    if found_nodes is None:
        # No node responds; reading the other parts would only wait for the same timeout twice more.
        missing |= dict.fromkeys(("clocks", "worst"), missing["nodes"])
        clocks = worst = None
    else:
        clocks = try_read("clocks", lambda: read_clocks(now, only_deleted_from=is_brief))
        worst = try_read("worst", lambda: read_worst(now, user, only_tombstones=is_brief))
    return ClusterHealth(
        now=now,
        nodes=found_nodes,
        clocks=clocks,
        repair_round=None if clocks is None or is_brief else read_round(now, clocks),
        worst=worst,
        uncovered=None if is_brief else _read_uncovered(user),
        read_path=None if is_brief else try_read("read_path", _read_counters),
        missing=missing,
    )


def _read_counters() -> ReadPath:
    return ReadPath(counters.read_all(), counters.counting_since())


def read_worst(
    now: dt.datetime, user: AbstractUser | AnonymousUser | None = None, *, only_tombstones: bool = False
) -> WorstPartitions:
    """Return the worst partitions. Raises `StoreUnavailable` if no node responds.

    user: whose rights decide which channels are named; None for all. only_tombstones: none by size.
    """
    known = top_partitions.read_latest()
    lists = {host: one for host, one in known.items() if isinstance(one, TopPartitions)}
    listed = list_figures(lists.values())
    names = ("tombstones",) if only_tombstones else ("tombstones", "bytes")
    # Each measure ranks its own candidates, so that a list does not depend on which others are read.
    candidates = {name: {*_largest(listed, name), *_worst_of_channels(name)} for name in names}
    keys = sorted(set().union(*candidates.values()))
    noted = _read_noted(keys)
    latest = {key: latest_figures(listed.get(key, {}), noted.get(key, {})) for key in keys}
    chosen = {name: _largest({key: latest[key] for key in candidates[name]}, name) for name in names}
    channels = _name_channels(user, {key[0] for keys in chosen.values() for key in keys})

    def describe(key: BucketKey, name: str) -> Partition:
        _, replicas = repairs.locate_bucket(*key)
        tombstones, size = (_value_of(_figure_in(latest[key], one)) for one in ("tombstones", "bytes"))
        is_by_size = name == "bytes"
        measured = KnownBucket(live=None, bytes=size) if is_by_size else KnownBucket(live=None, tombstones=tombstones)
        return Partition(
            channel_id=key[0],
            bucket=key[1],
            channel=channels.get(key[0]),
            bytes=size,
            tombstones=tombstones,
            per_replica={host: lists[host].tombstones.get(key) if host in lists else None for host in replicas},
            severity=severity_of(measured, health_limits()),
            figure=_figure_in(latest[key], name),
        )

    return WorstPartitions(
        by_tombstones=[describe(key, "tombstones") for key in chosen["tombstones"]],
        by_size=[describe(key, "bytes") for key in chosen.get("bytes", ())],
        listings=[_describe_listing(one, now) for one in lists.values()],
        errors={host: str(one) for host, one in known.items() if isinstance(one, NodeUnreachable)},
    )


def _read_noted(candidates: Collection[BucketKey]) -> Mapping[BucketKey, Mapping[str, Figure]]:
    """Return the recorded figures of buckets; none while too many nodes are down to read them."""
    try:
        return figures.read_figures_of(candidates)
    except StoreUnavailable:
        # The lists of the nodes that are up, and which ones are missing, are still worth showing.
        return {}


def _value_of(figure: Figure | None) -> int | None:
    return None if figure is None else figure.value


def _figure_in(found: Mapping[str, Figure], name: str) -> Figure | None:
    """Return a bucket's figure by the name that it has in the table of all channels."""
    return tombstones_in(found) if name == "tombstones" else found.get(name)


def _worst_of_channels(name: str) -> list[BucketKey]:
    """Return the worst buckets of the channels that have the most, by the index of the table of all channels."""
    rows = ChannelSummary.objects.alias(key=Coalesce(name, UNKNOWN_FIRST)).filter(key__gt=0)
    worst = rows.order_by("-key", "-channel_id").values_list("channel_id", f"{name}_bucket")
    return list(worst[:MAX_WORST_PARTITIONS])


def _largest(measured: Mapping[BucketKey, Mapping[str, Figure]], name: str) -> list[BucketKey]:
    values = {key: figure.value for key, found in measured.items() if (figure := _figure_in(found, name)) is not None}
    worst = sorted((key for key, value in values.items() if value > 0), key=lambda key: (-values[key], key))
    return worst[:MAX_WORST_PARTITIONS]


def _describe_listing(one: TopPartitions, now: dt.datetime) -> Listing:
    # A list that was never filled is not stale; it is shown as empty.
    is_stale = one.updated_at is not None and now - one.updated_at > STALE_AFTER
    return Listing(one.host, one.updated_at, one.is_live, one.floor.tombstones, one.floor.bytes, is_stale)


def _read_uncovered(user: AbstractUser | AnonymousUser | None) -> list[UncoveredChannel]:
    """Return what the table of all channels has, by its index."""
    rows = ChannelSummary.objects.alias(key=Coalesce("uncovered_deletes", UNKNOWN_FIRST)).filter(key__gt=0)
    found = rows.order_by("-key", "-channel_id").values_list("channel_id", "uncovered_deletes")
    deletes = dict(found[:MAX_UNCOVERED_CHANNELS])
    channels = _name_channels(user, deletes)
    return [
        UncoveredChannel(channel_id, channels.get(channel_id), number or 0) for channel_id, number in deletes.items()
    ]


def _name_channels(user: AbstractUser | AnonymousUser | None, channel_ids: Collection[int]) -> dict[int, Channel]:
    """Return the channels that the user may see; the others are shown by their ids."""
    channels = Channel.objects.select_related("guild")
    if user is not None:
        channels = restrict(channels, scope_for(user, READ_HEALTH), guild="guild_id", channel="pk")
    return channels.in_bulk(channel_ids)
