"""Full repairs: started by nodetool, tracked in the nodes' virtual tables, confirmed by the repair history alone.

- Always full. An incremental repair updates no statistics and separates sstables permanently, so that deletes and the
  data that they delete are never compacted together. Never forced: with a replica down it would repair nothing there.
- The exit code only shows that the command ran. `repair_history` shows that it repaired.
- A preview changes no data, compares the replicas and updates Cassandra's statistics.
"""

from __future__ import annotations

import datetime as dt
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings

from chatstore.domain.errors import ChatstoreError, NodeUnreachable, StoreUnavailable
from chatstore.domain.texts import Param
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.token_ranges import Repaired
from chatstore.store import cassandra, nodes, nodetool, repair_history

MESSAGES = "messages"

_PARTITION = "SELECT message_id FROM messages WHERE channel_id = ? AND bucket = ?"
_RUNNING = "SELECT keyspace_name, table_names, type, completed, state_init_timestamp FROM system_views.repairs"
_KNOWN = "SELECT id, keyspace_name, table_names, type FROM system_views.repairs"
_FAILURE = "SELECT failure_cause FROM system_views.repairs WHERE id = %s"
_VALIDATIONS = (
    "SELECT repair_id, table_name, completed, bytes_read, estimated_total_bytes FROM system_views.repair_validations"
)
_TASKS = "SELECT keyspace_name, table_name, task_id, kind FROM system_views.sstable_tasks"
_BEGUN = re.compile(r"Starting repair command #\d+ \(([0-9a-f-]{36})\)")

HISTORY_SECONDS = 5.0
"""Time for the history to record a repair after nodetool reports its end."""


class RepairFailed(ChatstoreError):
    """A repair did not complete; the text names the tables, the node and the reason."""


class RepairOverlaps(ChatstoreError):
    """Another repair is running, perhaps started by other tools; the text names it."""


@dataclass(frozen=True, slots=True)
class RunningRepair:
    """A repair that a node coordinates at present. kind: "full", "incremental", "preview full" …"""

    host: str
    keyspace: str
    tables: tuple[str, ...]
    kind: str
    began_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Part:
    """Scope of one repair command: some tables on one node.

    token: of the one partition to repair; None: all of the node's primary ranges (`-pr`).
    """

    host: str
    tables: tuple[str, ...]
    token: int | None = None
    is_preview: bool = False

    @property
    def arguments(self) -> list[str]:
        """nodetool's arguments."""
        arguments = ["repair", "-full"]
        arguments += ["--preview"] if self.is_preview else []
        arguments += ["-pr"] if self.token is None else ["-st", str(self.token - 1), "-et", str(self.token)]
        return [*arguments, "--", settings.CASSANDRA["keyspace"], *self.tables]


def locate_bucket(channel_id: int, bucket: int) -> tuple[int, list[str]]:
    """Return (token, replica addresses) of a bucket's partition of `messages`."""
    return cassandra.locate_partition(_PARTITION, (channel_id, bucket))


# --- Repairing -----------------------------------------------------------------------


class Repair:
    """A repair started by nodetool. Its methods raise only the errors that they name."""

    def __init__(self, part: Part, call: nodetool.Call, known_before: frozenset[uuid.UUID]) -> None:
        self.part = part
        self.call = call
        self._known_before = known_before
        self._id: uuid.UUID | None = None

    @property
    def params(self) -> dict[str, Param]:
        """Parameters of the texts of its errors."""
        return {"tables": tuple(self.part.tables), "node": self.part.host}

    def find_id(self) -> uuid.UUID | None:
        """Return the repair's id on the nodes; None until they have assigned one.

        It comes from nodetool's output, or from the node if the repair began before nodetool listened.
        """
        if self._id is None:
            begun = _BEGUN.search(self.call.read_output())
            self._id = uuid.UUID(begun[1]) if begun else self._query_id()
        return self._id

    def _query_id(self) -> uuid.UUID | None:
        new = [
            repair_id
            for repair_id, keyspace, tables, kind in _repairs_known_to(self.part.host)
            if repair_id not in self._known_before
            and (keyspace, kind) == (settings.CASSANDRA["keyspace"], "full")
            and set(tables or ()) == set(self.part.tables)
        ]
        return max(new, key=lambda repair_id: repair_id.time, default=None)

    def read_progress(self, replicas: Iterable[str]) -> tuple[str, float | None]:
        """Return (the table being compared, the replicas' progress in it from 0 to 1, or None if unknown)."""
        repair_id = self.find_id()
        seen: dict[str, list[tuple[int, int]]] = {}
        for answer in nodes.query_nodes(_VALIDATIONS, hosts=replicas).values():
            if isinstance(answer, NodeUnreachable):
                continue
            for of_repair, table, completed, read, total in answer:
                if of_repair == repair_id and not completed:
                    seen.setdefault(table, []).append((read or 0, total or 0))
        for table, amounts in seen.items():
            # The table's percentage column is wrong; its byte counts are right.
            total = sum(amount for _, amount in amounts)
            return table, min(1.0, sum(read for read, _ in amounts) / total) if total else None
        return "", None

    def finish(self) -> Repaired:
        """Return what was repaired, by the history, once nodetool has ended.

        Raises `RepairFailed` unless the history confirms it, and `NodeUnreachable`.
        """
        repair_id = self.find_id()
        try:
            self.call.answer()
        except nodetool.NodetoolFailed as failed:
            cause = _cause_of(self.part.host, repair_id) or failed.text
            raise RepairFailed(
                _("The repair of %(tables)s on node %(node)s failed. %(cause)s", **self.params, cause=cause)
            ) from failed
        if repair_id is None:
            raise RepairFailed(
                _(
                    "The repair of %(tables)s on node %(node)s never started: neither nodetool nor the node "
                    "reports it.",
                    **self.params,
                )
            )
        deadline = time.monotonic() + HISTORY_SECONDS
        while (repaired := repair_history.read_parent(repair_id, tables=self.part.tables)) is None:
            if time.monotonic() > deadline:
                raise RepairFailed(
                    _(
                        "The repair of %(tables)s on node %(node)s ended, but the repair history does not list it "
                        "as successful.",
                        **self.params,
                    )
                )
            time.sleep(0.2)
        if self.part.token is not None and not repaired.has(self.part.token):
            raise RepairFailed(
                _(
                    "The repair of %(tables)s on node %(node)s ended, but according to the repair history it did "
                    "not cover this bucket.",
                    **self.params,
                )
            )
        return repaired


@contextmanager
def repairing(part: Part) -> Iterator[Repair]:
    """Start a repair and yield it. Leaving the block early stops its nodetool and, as far as the replicas can be
    reached, their validations for it.
    """
    known_before = frozenset(repair_id for repair_id, *_ in _repairs_known_to(part.host))
    with nodetool.calling(part.host, *part.arguments) as call:
        try:
            yield Repair(part, call, known_before)
        except BaseException:
            if not call.has_ended:
                call.end()
                stop_validations(part.tables)
            raise


def _repairs_known_to(host: str) -> list[cassandra.Row]:
    """Return (id, keyspace, tables, kind) of the repairs that a node has coordinated; none if it does not respond."""
    answer = nodes.query_nodes(_KNOWN, hosts=[host])[host]
    return [] if isinstance(answer, NodeUnreachable) else answer


def stop_validations(tables: Sequence[str]) -> int:
    """Stop the validations of repairs of these tables, so that those repairs fail at once; return how many were
    stopped.
    """
    stopped = 0
    for host, tasks in nodes.query_nodes(_TASKS).items():
        if isinstance(tasks, NodeUnreachable):
            continue
        for keyspace, table, task_id, kind in tasks:
            ours = keyspace == settings.CASSANDRA["keyspace"] and table in tables
            if ours and "validation" in str(kind).lower():
                try:
                    nodetool.run(host, "stop", "-id", str(task_id))
                    stopped += 1
                except (StoreUnavailable, nodetool.NodetoolFailed):
                    # The validation has ended meanwhile, or its node is down.
                    continue
    return stopped


def _cause_of(host: str, repair_id: uuid.UUID | None) -> str:
    """Return the coordinator's failure cause of a repair; empty if there is none."""
    if repair_id is None:
        return ""
    answer = nodes.query_nodes(_FAILURE, (repair_id,), hosts=[host])[host]
    causes = [] if isinstance(answer, NodeUnreachable) else [str(cause) for (cause,) in answer if cause]
    return causes[0].partition("\n")[0][:300] if causes else ""


def list_running() -> list[RunningRepair]:
    """Return the repairs that the nodes coordinate at present, previews too. A node that does not respond is left out:
    its virtual table fails permanently after a forced repair with a replica down.
    """
    found = []
    for host, answer in nodes.query_nodes(_RUNNING).items():
        if isinstance(answer, NodeUnreachable):
            continue
        for keyspace, tables, kind, completed, began_at in answer:
            if not completed:
                began = None if began_at is None else began_at.replace(tzinfo=dt.UTC)
                found.append(RunningRepair(host, keyspace, tuple(tables or ()), kind, began))
    return found


def refuse_overlap(tables: Sequence[str]) -> None:
    """Raise `RepairOverlaps` if one of the tables is being repaired, no matter who started it."""
    for running in list_running():
        shared = set(running.tables or tables) & set(tables)
        if running.keyspace == settings.CASSANDRA["keyspace"] and shared and not running.kind.startswith("preview"):
            params: dict[str, Param] = {"kind": running.kind, "tables": tuple(sorted(shared)), "node": running.host}
            if running.began_at is None:
                raise RepairOverlaps(
                    _(
                        "Another repair (%(kind)s, of %(tables)s) is running on node %(node)s. "
                        "Two would compare the same data twice; this one is retried later.",
                        **params,
                    )
                )
            raise RepairOverlaps(
                _(
                    "Another repair (%(kind)s, of %(tables)s) has been running on node %(node)s since %(time)s. "
                    "Two would compare the same data twice; this one is retried later.",
                    **params,
                    time=running.began_at,
                )
            )
