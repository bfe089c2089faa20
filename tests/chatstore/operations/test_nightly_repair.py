"""A nightly repair continues where the last one ended: at the end of its hours, after a kill, or after a failure."""

from __future__ import annotations

import datetime as dt
import shlex
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from chatstore.domain.runs import RunState
from chatstore.domain.texts import as_json, from_json
from chatstore.models import JobRun
from chatstore.operations.bucket_jobs import nightly_repair
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import claim_run, work_on_run
from chatstore.operations.repair_status import rounds
from chatstore.operations.repair_status.repair_clock import read_clocks, repaired_by_node
from chatstore.store import cassandra
from tests.chatstore.repair_runs import delete_repair_runs
from tests.waiting import wait_until

SMALL = ("pins",)
NODES = ("127.0.0.1", "127.0.0.2")

SCRIPT = """
case " $* " in *" repair "*)
    echo "$1" >> "$0/calls"
    while [ -e "$0/$1.endless" ]; do sleep 0.1; done
    if [ -e "$0/$1.failing" ]; then echo "error: Endpoint not alive" >&2; exit 2; fi
esac
shift
exec "$@"
"""

pytestmark = pytest.mark.usefixtures("_small_tables_only", "_no_other_runs")


@pytest.fixture
def _small_tables_only(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(nightly_repair, "TABLE_GROUPS", (SMALL,))
    settings.GC_GRACE_RAISE_BY_ITSELF = False


@pytest.fixture
def _no_other_runs() -> Iterator[None]:
    """Delete the runs of the nightly repair before and after a test: each continues the round of the last one."""
    delete_repair_runs()
    yield
    delete_repair_runs()


@pytest.fixture
def calls(settings: Settings, tmp_path: Path) -> Path:
    """Make nodetool write the node of each repair to the file `calls`, wait while `NODE.endless` exists, and fail if
    `NODE.failing` does. Return the folder.
    """
    settings.NODETOOL = shlex.join(["sh", "-c", SCRIPT, str(tmp_path), "{host}", *shlex.split(settings.NODETOOL)])
    return tmp_path


def repaired_nodes(calls: Path) -> list[str]:
    return (calls / "calls").read_text().split() if (calls / "calls").exists() else []


def a_night(**values: object) -> JobRun:
    """Return a due run of a slot of its own."""
    return JobRun.objects.create(job="repair", slot=f"n{time.monotonic_ns()}"[:16], due_at=postgres_now(), **values)


def work(run: JobRun) -> JobRun:
    done = work_on_run(run.pk)
    assert done is not None
    return done


def oldest() -> str:
    """Return the node whose last repair of the small tables is the oldest."""
    times = repaired_by_node(SMALL)
    long_ago = dt.datetime.min.replace(tzinfo=dt.UTC)
    return min(NODES, key=lambda node: (min(times[table][node] or long_ago for table in SMALL), node))


@pytest.mark.slow
def test_a_night_continues_where_the_hours_of_the_last_one_ended(calls: Path) -> None:
    first = oldest()
    second = next(node for node in NODES if node != first)
    (calls / f"{second}.endless").touch()
    night = a_night()
    claim = claim_run(night.pk)
    assert claim is not None
    results = []

    def work_until_hours_end() -> None:
        try:
            results.append(nightly_repair.repair_run(claim))
        finally:
            connection.close()

    worker = threading.Thread(target=work_until_hours_end)
    worker.start()
    wait_until(lambda: repaired_nodes(calls) == [first, second])
    claim.closes_at = postgres_now()
    worker.join(60)
    claim.end(results[0])
    night.refresh_from_db()
    assert (night.state, night.result["nodes repaired"], night.result["nodes left"]) == (RunState.DONE, 1, 1)

    (calls / f"{second}.endless").unlink()
    done = work(a_night())
    assert (done.state, done.error) == (RunState.DONE, "")
    assert repaired_nodes(calls) == [first, second, second, first]
    assert (done.result["nodes repaired"], done.result["nodes left"]) == (2, 0)
    # The round of the first night was complete once the second node had been repaired.
    assert from_json(done.result["round began"]) > from_json(night.result["round began"])


def test_a_node_that_fails_does_not_keep_the_others_from_being_repaired(calls: Path) -> None:
    first = oldest()
    second = next(node for node in NODES if node != first)
    (calls / f"{first}.failing").touch()
    night = work(a_night())
    assert night.state == RunState.FAILED
    assert f"on node {first} failed" in night.error
    assert repaired_nodes(calls) == [first, second]
    assert (night.result["nodes repaired"], night.result["nodes left"]) == (1, 1)
    JobRun.objects.filter(retry_of=night).delete()


@pytest.mark.slow
def test_a_worker_that_takes_a_run_over_skips_what_it_has_repaired(calls: Path) -> None:
    killed = a_night(
        state=RunState.RUNNING,
        started_at=postgres_now() - dt.timedelta(minutes=5),
        lease_until=postgres_now() - dt.timedelta(minutes=1),
        attempts=1,
        result={"nodes repaired": 1},
    )
    first = oldest()
    with_one = work(a_night())
    assert with_one.state == RunState.DONE
    assert first in repaired_nodes(calls)
    (calls / "calls").unlink()
    done = work(killed)
    assert (done.state, done.result["repaired by an earlier attempt"]) == (RunState.DONE, 2)
    assert repaired_nodes(calls) == []


def test_the_replicas_of_every_range_are_known_for_the_whole_ring() -> None:
    found = cassandra.replicas_by_range()
    assert [(token, node) for token, node, _ in found] == cassandra.ring()
    assert all(sorted(replicas) == list(NODES) for *_, replicas in found)


def test_the_end_of_a_round_follows_from_the_speed_of_the_last_runs() -> None:
    now = postgres_now()
    clocks = read_clocks(now)
    assert rounds.read_round(now, clocks) is None
    began_at = now + dt.timedelta(days=1)
    run = a_night(
        state=RunState.DONE,
        started_at=now - dt.timedelta(hours=2),
        ended_at=now - dt.timedelta(hours=1),
        result={"round began": as_json(began_at)},
    )
    found = rounds.read_round(now, clocks)
    assert found is not None
    assert (found.began_at, found.nodes, found.repaired, found.ends_at) == (began_at, 2, 0, None)
    run.result["nodes repaired"] = 6
    run.save()
    found = rounds.read_round(now, clocks)
    assert found is not None
    assert found.ends_at is not None
    assert (found.ends_at.minute, found.ends_at > now) == (50, True)
