"""A repair is a run: Cassandra's repair history decides on success, a failure is retried, and a stop ends nodetool."""

import datetime as dt
import re
import threading
import time
from dataclasses import replace

import psutil
import pytest
from django.conf import settings
from django.db import connection
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import nightly_repair
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.definitions import job_named
from chatstore.operations.jobs.runs import due_runs, request_run, stop_run, work_on_run
from chatstore.operations.repair_status.repair_clock import last_repair_of, read_clock, read_clocks
from chatstore.store import figures, nodetool, repairs
from tests.chatstore.channels import delete_rows, fresh_id, now_ms, write_messages
from tests.chatstore.operations.jobs import register_only
from tests.chatstore.top_partition_lists import make_room_in_lists

BUCKET = bucket_at(now_ms()) - 4
SMALL = ("pins", "withdrawn")


@pytest.fixture(scope="module", autouse=True)
def _room_in_lists() -> None:
    make_room_in_lists()


@pytest.fixture
def _small_tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repair small tables only: in a store used for benches a repair of `messages` takes minutes."""
    monkeypatch.setattr(nightly_repair, "TABLE_GROUPS", (SMALL,))


def a_bucket() -> int:
    """Return the channel of a bucket with twenty messages, five of them deleted."""
    channel_id = fresh_id()
    first, _ = bucket_ids(BUCKET)
    ids = [first + number for number in range(1, 21)]
    write_messages(channel_id, ids)
    delete_rows(channel_id, ids[:5])
    return channel_id


def work(run: JobRun) -> JobRun:
    done = work_on_run(run.pk)
    assert done is not None
    return done


def work_and_close(run: JobRun) -> None:
    try:
        work_on_run(run.pk)
    finally:
        connection.close()


def test_one_bucket_is_repaired_and_measured_by_every_replica(otto: User) -> None:
    channel_id = a_bucket()
    before = postgres_now()
    earlier = last_repair_of(channel_id, BUCKET)
    assert earlier is None or earlier < before
    run = work(request_run("repair_bucket", actor=otto, subject=f"{channel_id}:{BUCKET}"))
    assert (run.state, run.error) == (RunState.DONE, "")
    assert run.result["replicas"] == 2
    assert run.result["tombstones on 127.0.0.1"] == run.result["tombstones on 127.0.0.2"] == 5
    repaired_at = last_repair_of(channel_id, BUCKET)
    assert repaired_at is not None
    assert repaired_at > before - dt.timedelta(seconds=1)
    noted = figures.read_figures(channel_id)[BUCKET]
    assert noted["repaired_at"].value == int(repaired_at.timestamp() * 1_000)
    assert (noted["tombstones_seen_by_repair"].value, noted["tombstones_seen_by_repair"].source) == (
        5,
        "top partitions",
    )
    assert noted["tombstones_apart"].value == 0


@pytest.mark.slow
@pytest.mark.usefixtures("_small_tables_only")
def test_a_full_repair_resets_the_clocks_and_a_second_attempt_skips_repaired_ranges(settings: Settings) -> None:
    settings.GC_GRACE_RAISE_BY_ITSELF = False
    before = postgres_now()
    first = JobRun.objects.create(job="repair", slot=f"t{time.monotonic_ns()}"[:16], due_at=before)
    done = work(first)
    assert (done.state, done.error) == (RunState.DONE, "")
    assert done.result["nodes"] == 2
    for table in SMALL:
        clock = read_clock(table)
        assert clock.began_at is not None
        assert clock.began_at > before - dt.timedelta(seconds=1)
        assert set(clock.per_node) == {"127.0.0.1", "127.0.0.2"}
    again = JobRun.objects.create(job="repair", due_at=before, retry_of=first)
    assert work(again).result["repaired by an earlier attempt"] == 2


def test_no_repair_starts_beside_another_one() -> None:
    seen: set[str] = set()
    with nodetool.calling("127.0.0.1", "repair", "-full", "-seq", "--", settings.CASSANDRA["keyspace"], *SMALL) as call:
        while not call.has_ended:
            try:
                repairs.refuse_overlap(["pins"])
            except repairs.RepairOverlaps as overlaps:
                seen.add(str(overlaps))
    named = re.compile(r"Another repair \(full, of pins\) (is|has been) running on node 127\.0\.0\.1")
    assert any(named.match(blocker) for blocker in seen)
    repairs.refuse_overlap(["pins"])


SLEEP_FOREVER = "sh -c 'sleep 300; true' MARK"


@pytest.fixture
def endless_nodetool(settings: Settings) -> str:
    """Configure a nodetool that runs until it is killed; return the mark in its command lines."""
    mark = f"mark-{time.monotonic_ns()}"
    settings.NODETOOL = SLEEP_FOREVER.replace("MARK", mark)
    return mark


def is_running(mark: str) -> bool:
    return any(
        mark in (p.info["cmdline"] or []) and p.info["status"] != psutil.STATUS_ZOMBIE
        for p in psutil.process_iter(["cmdline", "status"])
    )


def test_a_run_that_is_stopped_ends_its_nodetool(otto: User, endless_nodetool: str) -> None:
    run = request_run("repair_bucket", actor=otto, subject=f"{a_bucket()}:{BUCKET}")
    worker = threading.Thread(target=work_and_close, args=(run,))
    worker.start()
    give_up = time.monotonic() + 300
    while not is_running(endless_nodetool) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert is_running(endless_nodetool)
    assert stop_run(run.pk, actor=otto)
    worker.join(15)
    run.refresh_from_db()
    assert (run.state, run.error) == (RunState.STOPPED, "The run was stopped.")
    assert not is_running(endless_nodetool)


def test_success_of_nodetool_needs_the_repair_history(otto: User, settings: Settings) -> None:
    settings.NODETOOL = "echo Starting repair command #1 (2b1f2b2e-c731-11f0-8000-000000000000) "
    run = work(request_run("repair_bucket", actor=otto, subject=f"{a_bucket()}:{BUCKET}"))
    assert run.state == RunState.FAILED
    assert "the repair history does not list it as successful" in run.error


@pytest.mark.usefixtures("_small_tables_only")
def test_a_failed_nightly_repair_is_retried_automatically(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.NODETOOL = "sh -c 'echo \"error: Endpoint not alive\" >&2; exit 2'"
    night = JobRun.objects.create(job="repair", slot=f"u{time.monotonic_ns()}"[:16], due_at=postgres_now())
    # At whatever hour the test runs.
    register_only(monkeypatch, replace(job_named("repair"), schedule=Schedule("30 2 * * *", "UTC")))
    failed = work(night)
    assert failed.state == RunState.FAILED
    assert failed.error == (
        "The repair of pins, withdrawn on node 127.0.0.1 failed. "
        "nodetool repair failed on node 127.0.0.1: Endpoint not alive"
    )
    again = JobRun.objects.get(retry_of=failed)
    assert again not in due_runs()
    assert again.due_at > postgres_now() + dt.timedelta(minutes=25)
    again.delete()
    failed.delete()


def test_every_table_has_a_clock() -> None:
    clocks = read_clocks()
    assert clocks[0].table == "messages"
    assert {clock.table for clock in clocks} == {
        "messages",
        "bucket_ledger",
        "bucket_figures",
        "author_buckets",
        "quarantine",
        "withdrawn",
        "pins",
    }
