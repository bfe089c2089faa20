"""Compaction of one bucket: merges its files, or drops its tombstones earlier than Cassandra would.

- Dropping has more preconditions than merging. A tombstone keeps a late copy of the deleted row away. It may
  be dropped once a repair that began after the delete has completed, so that every replica has it, and once
  gc_grace has passed, so that nothing older can still arrive. All replicas drop it in immediate succession,
  after a flush: a quorum read in between writes it back from a replica that still has it.
- Only data on disk is dropped. The preconditions are therefore checked again after the flush: a delete from
  then on is kept, and an earlier one is recorded by then, or its job still has the channel locked.
- `forcecompact` prints nothing and exits with 0 even if it changed nothing, so the bucket is measured afterwards.
"""

from __future__ import annotations

import datetime as dt
import enum
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from chatstore.domain.buckets import BucketKey, format_bucket
from chatstore.domain.datetimes import format_datetime
from chatstore.domain.errors import BadInput, NodeUnreachable
from chatstore.domain.texts import Duration, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.bucket_jobs.repair import note_measured
from chatstore.operations.coordination.channel_lock import lock_owners
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import SEEN_BY_REPAIR
from chatstore.operations.health.probes import parse_bucket_subject
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.delete_log import last_deletes
from chatstore.operations.repair_status.repair_clock import MESSAGES, covered_until, last_repairs_of
from chatstore.store import cassandra, figures, nodes, nodetool, repairs, tables
from chatstore.store.measuring import measure_bucket

COMPACTION_TIMEOUT_SECONDS = 3_600.0
"""Timeout for rewriting all files that contain the bucket; they are rewritten whole."""

GARBAGE_COLLECT_TIMEOUT_SECONDS = 12 * 3_600.0
"""Timeout for rewriting all files of a node."""


class Remedy(enum.Enum):
    """What ends an obstacle: a repair of the bucket, the end of gc_grace, or something else."""

    REPAIR = enum.auto()
    GC_GRACE = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the tombstones of a bucket may not be dropped now. reason: a sentence for people."""

    reason: str
    remedy: Remedy = Remedy.OTHER


def find_obstacle(channel_id: int, bucket: int) -> Obstacle | None:
    """Return why the tombstones of a bucket may not be dropped now; None if they may.

    Raises `StoreUnavailable`.
    """
    key = (channel_id, bucket)
    return find_obstacles([key])[key]


def find_obstacles(keys: Collection[BucketKey]) -> dict[BucketKey, Obstacle | None]:
    """Return `find_obstacle` of several buckets, with as many reads as for one. Raises `StoreUnavailable`."""
    down, owners = nodes.list_down(), lock_owners({channel_id for channel_id, _bucket in keys})
    found = {key: _find_passing_obstacle(key, down, owners.get(key[0])) for key in keys}
    free = [key for key, obstacle in found.items() if obstacle is None]
    if not free:
        return found
    deleted, repaired = last_deletes(free), last_repairs_of(free)
    for key in free:
        if reason := _why_repair_first(repaired[key], deleted.get(key)):
            found[key] = Obstacle(reason, Remedy.REPAIR)
    # Records of deletes are pruned only when older than gc_grace and covered by a repair.
    waiting = {key: deleted[key] for key in free if found[key] is None and key in deleted}
    if waiting:
        grace, now = dt.timedelta(seconds=tables.read_table(MESSAGES).gc_grace_seconds), postgres_now()
        for key, last in waiting.items():
            if last + grace > now:
                found[key] = Obstacle(_describe_gc_grace(last, last + grace), Remedy.GC_GRACE)
    return found


def _find_passing_obstacle(key: BucketKey, down: Collection[str], owner: str | None) -> Obstacle | None:
    """Return an obstacle that passes by itself. down: nodes that are. owner: the job that has locked the channel."""
    _token, replicas = repairs.locate_bucket(*key)
    down_here = [host for host in down if host in replicas]
    if down_here:
        return Obstacle(
            ngettext_lazy(
                "Node %(nodes)s is down. All replicas must drop tombstones together, or they are written back.",
                "Nodes %(nodes)s are down. All replicas must drop tombstones together, or they are written back.",
                len(down_here),
                nodes=tuple(down_here),
            )
        )
    if owner is not None:
        return Obstacle(
            _(
                "The channel is locked by %(job)s, whose deletes are recorded when it is done. Try again then.",
                job=owner.replace(":", " "),
            )
        )
    if not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        return Obstacle(
            _("Other programs delete here at unknown times. Cassandra drops the tombstones itself after gc_grace.")
        )
    return None


def _why_repair_first(began_at: dt.datetime | None, last: dt.datetime | None) -> str:
    """Return why the repair that began at the given time does not cover the last delete; "" if it does."""
    if began_at is None:
        return _("No full repair has covered this bucket within 30 days. Repair it first.")
    if last is None or last < covered_until(began_at):
        return ""
    if format_datetime(last) == format_datetime(began_at):
        return _(
            "The last repair does not cover the last delete here: it began within the same minute (%(delete)s). "
            "Repair it first.",
            delete=last,
        )
    return _(
        "The last repair (%(repair)s) does not cover the last delete here (%(delete)s). Repair it first.",
        repair=began_at,
        delete=last,
    )


def _describe_gc_grace(last: dt.datetime, free_at: dt.datetime) -> str:
    return _(
        "The last delete here (%(delete)s) is younger than gc_grace. Until %(end)s an older write could still "
        "arrive and restore deleted messages.",
        delete=last,
        end=free_at,
    )


def compact_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "compact": drop a bucket's tombstones on every replica and measure it again.

    Raises `BadInput` if they may not be dropped, `NodeUnreachable`, `NodetoolFailed`, `RepairFailed`.
    """
    channel_id, bucket = parse_bucket_subject(claim.run.subject)
    _check_droppable(channel_id, bucket)
    _token, replicas = repairs.locate_bucket(channel_id, bucket)
    before = figures.read_figures(channel_id).get(bucket, {}).get(SEEN_BY_REPAIR)
    claim.report_progress(done=0, total=2, what=_("compacting the bucket on every replica"))
    keyspace = settings.CASSANDRA["keyspace"]
    _on_each(replicas, "flush", keyspace, MESSAGES, check=claim.check)
    _check_droppable(channel_id, bucket)
    _on_each(replicas, "forcecompact", keyspace, MESSAGES, format_bucket(channel_id, bucket))
    claim.report_progress(done=1, total=2, what=_("measuring the bucket again"))
    after = note_measured(measure_bucket(channel_id, bucket))
    was = "not measured" if before is None else before.value
    return {"tombstones before": was, "replicas": len(replicas)} | after


def _check_droppable(channel_id: int, bucket: int) -> None:
    if obstacle := find_obstacle(channel_id, bucket):
        raise BadInput(obstacle.reason)


def merge_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "merge": merge the files that contain a bucket; data within gc_grace is kept."""
    channel_id, bucket = parse_bucket_subject(claim.run.subject)
    claim.report_progress(done=0, total=1, what=_("merging the files of the bucket on every replica"))
    return {"replicas": merge_bucket(channel_id, bucket, check=claim.check)}


def merge_bucket(channel_id: int, bucket: int, *, check: Callable[[], None] = lambda: None) -> int:
    """Merge the files that contain a bucket, on every replica; return the number of replicas that completed.

    Removes shadowed rows and keeps tombstones. Safe at any time; reading a page over deleted rows is several
    times faster afterwards. Raises `NodeUnreachable`, `NodetoolFailed`.
    """
    _token, replicas = repairs.locate_bucket(channel_id, bucket)
    up = [host for host in replicas if host not in nodes.list_down()]
    if not up:
        raise NodeUnreachable(_("No node that has this bucket is up: %(nodes)s.", nodes=tuple(replicas)))
    keyspace = settings.CASSANDRA["keyspace"]
    _on_each(up, "flush", keyspace, MESSAGES, check=check)
    _on_each(up, "compact", "--partition", format_bucket(channel_id, bucket), keyspace, MESSAGES, check=check)
    return len(up)


def garbage_collect_tables(names: Sequence[str], *, check: Callable[[], None] = lambda: None) -> int:
    """Rewrite the files of some tables without deleted rows (nodetool garbagecollect), one node at a time.

    Return the number of nodes. Tombstones are kept. Safe at any time, but expensive: all files of the tables are
    rewritten. Raises `NodeUnreachable` before anything starts if a node is down, `NodetoolFailed`.
    """
    hosts = sorted({host for _, host in cassandra.ring()})
    down = [host for host in nodes.list_down() if host in hosts]
    if down:
        raise NodeUnreachable(
            ngettext_lazy(
                "Node %(nodes)s is down, and its copies of deleted rows would remain.",
                "Nodes %(nodes)s are down, and their copies of deleted rows would remain.",
                len(down),
                nodes=tuple(down),
            )
        )
    keyspace = settings.CASSANDRA["keyspace"]
    for host in hosts:
        _on_each([host], "flush", keyspace, *names, check=check)
        _on_each(
            [host], "garbagecollect", keyspace, *names, check=check, timeout_seconds=GARBAGE_COLLECT_TIMEOUT_SECONDS
        )
    return len(hosts)


def _on_each(
    hosts: Sequence[str],
    *arguments: str,
    check: Callable[[], None] = lambda: None,
    timeout_seconds: float = COMPACTION_TIMEOUT_SECONDS,
) -> None:
    """Run the same command on several nodes at once, because a read in between could undo it.

    check: called every second; an exception from it ends the calls. A node completes what it has begun.
    """
    give_up = time.monotonic() + timeout_seconds
    with ExitStack() as stack:
        calls = [stack.enter_context(nodetool.calling(host, *arguments)) for host in hosts]
        for call in calls:
            while not call.wait(1.0):
                check()
                if time.monotonic() > give_up:
                    raise NodeUnreachable(
                        _(
                            "Node %(node)s did not complete nodetool %(command)s within %(time)s.",
                            node=call.host,
                            command=arguments[0],
                            time=Duration(timeout_seconds),
                        )
                    )
        for call in calls:
            call.answer()
