"""Compaction of one bucket: its files merged, or its tombstones dropped before Cassandra would by itself.

- Dropping asks for more than merging. A tombstone is what keeps a late copy of the deleted row away: it may
  go when a repair that began after the delete has passed, so that every replica has it, and when gc_grace is
  over, so that nothing older can still arrive. All replicas drop it one right after the other, flushed
  before: a read at quorum in between writes it back from the one that still has it.
- Only what is on disk is dropped. So whether it may be is asked once more after the flush: a delete from then
  on stays, and one from before is noted by then, or its job still holds the channel.
- `forcecompact` says nothing and exits with 0 also when it did nothing: the bucket is measured afterwards.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from django.conf import settings

from chatstore.domain.datetimes import say_moment
from chatstore.domain.errors import BadInput, NodeUnreachable
from chatstore.operations.bucket_jobs.repair import note_measured
from chatstore.operations.coordination.channel_lock import holder_of
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_health import SEEN_BY_REPAIR
from chatstore.operations.health.probes import read_bucket
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.delete_log import last_delete
from chatstore.operations.repair_status.repair_clock import MESSAGES, last_repair_of, surely_before
from chatstore.store import cassandra, figures, nodes, nodetool, repairs, tables
from chatstore.store.measuring import measure_bucket

COMPACTION_SECONDS = 3_600.0
"""For all files that hold the bucket, which are rewritten whole."""

DROPPING_SECONDS = 12 * 3_600.0
"""For all files of a node, which are."""


def why_not_compact(channel_id: int, bucket: int) -> str:
    """Why the tombstones of a bucket may not be dropped now, in a sentence; "" when they may be.

    Raises `StoreUnavailable`.
    """
    _, replicas = repairs.locate_bucket(channel_id, bucket)
    down = [host for host in nodes.list_down() if host in replicas]
    if down:
        return f"Node {', '.join(down)} is down. All replicas must drop them together, or they are written back."
    holder = holder_of(channel_id)
    if holder is not None:
        return (
            f"The channel is held by {holder.replace(':', ' ')}, and what that deletes is noted when it is done. "
            "Try again then."
        )
    if not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        return "Other programs delete here too, and nobody knows when: Cassandra drops them by itself after gc_grace."
    began_at = last_repair_of(channel_id, bucket)
    if began_at is None:
        return "No full repair has covered this bucket within 30 days. Repair it first."
    last = last_delete(channel_id, bucket)
    # What was forgotten of deletes is older than gc_grace, and covered.
    if last is None:
        return ""
    if last >= surely_before(began_at):
        return (
            f"The last delete here ({say_moment(last)}) is newer than the last repair ({say_moment(began_at)}). "
            "Repair it first."
        )
    free_at = last + dt.timedelta(seconds=tables.read_table(MESSAGES).gc_grace_seconds)
    if free_at > postgres_now():
        return (
            f"The last delete here ({say_moment(last)}) is younger than gc_grace: until {say_moment(free_at)} "
            "an older write could still arrive, and what was deleted would be back."
        )
    return ""


def compact_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """The job "compact": drops a bucket's tombstones on every replica, and measures it again.

    Raises `BadInput` when they may not be dropped, `NodeUnreachable`, `NodetoolFailed`, `RepairFailed`.
    """
    channel_id, bucket = read_bucket(claim.run.subject)
    _check_droppable(channel_id, bucket)
    _, replicas = repairs.locate_bucket(channel_id, bucket)
    before = figures.read_figures(channel_id).get(bucket, {}).get(SEEN_BY_REPAIR)
    claim.tell(done=0, total=2, what="compacting it on every replica")
    keyspace = settings.CASSANDRA["keyspace"]
    _on_each(replicas, "flush", keyspace, MESSAGES, look=claim.look)
    _check_droppable(channel_id, bucket)
    _on_each(replicas, "forcecompact", keyspace, MESSAGES, f"{channel_id}:{bucket}")
    claim.tell(done=1, total=2, what="measuring it again")
    after = note_measured(measure_bucket(channel_id, bucket))
    was = "not measured" if before is None else before.value
    return {"tombstones before": was, "replicas": len(replicas)} | after


def _check_droppable(channel_id: int, bucket: int) -> None:
    if why_not := why_not_compact(channel_id, bucket):
        raise BadInput(why_not)


def merge_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """The job "merge": joins the files in which a bucket lies; what gc_grace keeps stays."""
    channel_id, bucket = read_bucket(claim.run.subject)
    claim.tell(done=0, total=1, what="merging its files on every replica")
    return {"replicas": merge_bucket(channel_id, bucket, look=claim.look)}


def merge_bucket(channel_id: int, bucket: int, *, look: Callable[[], None] = lambda: None) -> int:
    """Joins the files in which a bucket lies, on every replica; how many replicas did.

    Dead rows go, tombstones stay. Safe at any time; a page of a bucket over dead rows is several times
    quicker afterwards. Raises `NodeUnreachable`, `NodetoolFailed`.
    """
    _, replicas = repairs.locate_bucket(channel_id, bucket)
    up = [host for host in replicas if host not in nodes.list_down()]
    if not up:
        raise NodeUnreachable(f"Node {', '.join(replicas)} is down, and nobody else has this bucket.")
    keyspace = settings.CASSANDRA["keyspace"]
    _on_each(up, "flush", keyspace, MESSAGES, look=look)
    _on_each(up, "compact", "--partition", f"{channel_id}:{bucket}", keyspace, MESSAGES, look=look)
    return len(up)


def drop_deleted(names: Sequence[str], *, look: Callable[[], None] = lambda: None) -> int:
    """Has every node in turn write the files of some tables again without what deletes cover; how many nodes did.

    Tombstones stay. Safe at any time, and dear: all files of the tables are written anew.
    Raises `NodeUnreachable` before anything is begun when a node is down, `NodetoolFailed`.
    """
    hosts = sorted({host for _, host in cassandra.ring()})
    down = [host for host in nodes.list_down() if host in hosts]
    if down:
        raise NodeUnreachable(f"Node {', '.join(down)} is down, and what it has of what was deleted would stay.")
    keyspace = settings.CASSANDRA["keyspace"]
    for host in hosts:
        _on_each([host], "flush", keyspace, *names, look=look)
        _on_each([host], "garbagecollect", keyspace, *names, look=look, at_most_seconds=DROPPING_SECONDS)
    return len(hosts)


def _on_each(
    hosts: Sequence[str],
    *arguments: str,
    look: Callable[[], None] = lambda: None,
    at_most_seconds: float = COMPACTION_SECONDS,
) -> None:
    """The same on several nodes at once: what lies between them is what a read could undo.

    look: called every second; what it raises ends the calls. What a node has begun it brings to its end.
    """
    give_up = time.monotonic() + at_most_seconds
    with ExitStack() as stack:
        calls = [stack.enter_context(nodetool.calling(host, *arguments)) for host in hosts]
        for call in calls:
            while not call.wait(1.0):
                look()
                if time.monotonic() > give_up:
                    hours = f"{at_most_seconds / 3_600:.0f} h"
                    raise NodeUnreachable(f"Node {call.host} is not done with nodetool {arguments[0]} after {hours}.")
        for call in calls:
            call.answer()
