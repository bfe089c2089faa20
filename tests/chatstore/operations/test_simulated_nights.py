"""Nights of a cluster of 177 nodes: each continues the last one, and nodes that share no replica run together.

Cassandra's history, its nodes and nodetool are simulated: a repair ends after some polls.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pytest_django import Settings

from chatstore.domain.errors import NodeUnreachable
from chatstore.domain.repair_rounds import replicas_by_node
from chatstore.domain.texts import from_json
from chatstore.domain.token_ranges import Repaired
from chatstore.operations.bucket_jobs import nightly_repair
from chatstore.operations.bucket_jobs.nightly_repair import TABLE_GROUPS, Night
from chatstore.operations.jobs.runs import Claim, OutOfHours
from chatstore.store import nodes, repairs
from chatstore.store.repairs import Part, RepairFailed

pytestmark = pytest.mark.unit

NODES = [f"10.0.{number // 100}.{number % 100:02}" for number in range(177)]
# Each node has one token, and the next two nodes have the other replicas.
REPLICAS = replicas_by_node((n, NODES[n], [NODES[(n + k) % len(NODES)] for k in range(3)]) for n in range(len(NODES)))
BEGIN = dt.datetime(2026, 11, 1, 2, 30, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


@dataclass
class Cluster:
    """A simulated cluster. commands: the nodes of all repairs in the order of their starts. most: at a time."""

    now: dt.datetime = BEGIN
    history: dict[str, dict[str, dt.datetime | None]] = field(
        default_factory=lambda: {table: dict.fromkeys(NODES) for group in TABLE_GROUPS for table in group}
    )
    commands: list[str] = field(default_factory=list)
    active: set[str] = field(default_factory=set)
    most: int = 0
    down: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    round_began_at: dt.datetime | None = None
    polls: random.Random = field(default_factory=lambda: random.Random(1))

    @contextmanager
    def repairing(self, part: Part) -> Iterator[Any]:
        assert all(REPLICAS[part.host].isdisjoint(REPLICAS[other]) for other in self.active)
        assert REPLICAS[part.host].isdisjoint(self.down)
        self.now += SECOND
        began_at, left = self.now, self.polls.randrange(1, 5)
        self.commands.append(part.host)
        self.active.add(part.host)
        self.most = max(self.most, len(self.active))

        def wait(_seconds: float) -> bool:
            nonlocal left
            left -= 1
            return left <= 0

        def finish() -> Repaired:
            if part.host in self.failing:
                raise RepairFailed(f"{part.host} failed")
            for table in part.tables:
                self.history[table][part.host] = began_at
            return Repaired(began_at, ((1, 2),))

        try:
            call = SimpleNamespace(wait=wait)
            yield SimpleNamespace(call=call, finish=finish, read_progress=lambda _replicas: ("messages", 0.5))
        finally:
            self.active.remove(part.host)

    def night(self, *, reports: int = 10**9) -> dict[str, Any]:
        """Run a night whose hours end after so many reports of progress; return its result."""
        self.now += dt.timedelta(hours=20)
        claim = SimpleNamespace(
            run=SimpleNamespace(result={}, retry_of=None, requested_by_id=None, started_at=self.now),
            check=lambda: None,
            note=lambda _result: None,
        )

        def report_progress(**_values: object) -> None:
            nonlocal reports
            reports -= 1
            if reports < 0:
                raise OutOfHours("The hours have ended.")

        claim.report_progress = report_progress
        night = Night(cast(Claim, claim), REPLICAS)
        try:
            night.work()
            night.check_complete()
        except OutOfHours:
            assert reports < 0
        finally:
            assert not self.active
            self.round_began_at = from_json(night.result["round began"])
        return night.result

    def repaired_since(self, time: dt.datetime) -> int:
        times: list[Mapping[str, dt.datetime | None]] = list(self.history.values())
        return sum(all((of_table[node] or BEGIN) >= time for of_table in times) for node in NODES)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Cluster:
    made = Cluster()
    settings.REPAIR_NODES_AT_ONCE = 4
    monkeypatch.setattr(nightly_repair, "repaired_by_node", lambda _tables: made.history)
    monkeypatch.setattr(nightly_repair, "last_round_began_at", lambda: made.round_began_at)
    monkeypatch.setattr(nightly_repair, "postgres_now", lambda: made.now)
    monkeypatch.setattr(repairs, "repairing", made.repairing)
    monkeypatch.setattr(nodes, "list_down", lambda: made.down)
    return made


def test_a_round_over_several_nights_repairs_every_node_before_any_a_second_time(cluster: Cluster) -> None:
    results = []
    while cluster.repaired_since(BEGIN + SECOND) < len(NODES):
        results.append(cluster.night(reports=80))
    assert len(results) > 2
    repaired = sum(result["nodes repaired"] for result in results)
    # The last of these nights has begun the next round.
    assert len(NODES) <= repaired < len(NODES) + results[-1]["nodes repaired"]
    assert cluster.most == 4
    began = [from_json(result["round began"]) for result in results]
    assert began[0] == began[-2]
    assert began[-1] > began[0]


def test_one_node_at_a_time_unless_it_is_set(cluster: Cluster, settings: Settings) -> None:
    settings.REPAIR_NODES_AT_ONCE = 1
    result = cluster.night()
    assert cluster.most == 1
    assert cluster.commands == [node for node in NODES for _group in TABLE_GROUPS]
    assert (result["nodes repaired"], result["nodes left"]) == (len(NODES), 0)


def test_nodes_beside_one_that_is_down_are_the_first_once_it_is_back(cluster: Cluster, settings: Settings) -> None:
    settings.REPAIR_NODES_AT_ONCE = 1
    cluster.down = [NODES[9]]
    with pytest.raises(NodeUnreachable, match=r"10\.0\.0\.09 is down.* 3 of 177 nodes were left"):
        cluster.night()
    cluster.down, cluster.commands = [], []
    cluster.night(reports=20)
    assert cluster.commands[:6] == [node for node in NODES[7:10] for _group in TABLE_GROUPS]


def test_a_failing_node_is_reported_after_all_others_were_repaired(cluster: Cluster) -> None:
    cluster.failing = {NODES[0]}
    with pytest.raises(RepairFailed, match=r"10\.0\.0\.00 failed"):
        cluster.night()
    assert cluster.repaired_since(BEGIN + SECOND) == len(NODES) - 1
