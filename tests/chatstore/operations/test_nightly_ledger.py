"""Each night, buckets that had deletes are read again, and empty ones are marked in the ledger."""

import datetime as dt
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.runs import RunState
from chatstore.domain.snowflakes import first_id_at
from chatstore.models import BucketDeletes, JobRun
from chatstore.operations.bucket_jobs import nightly_ledger
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import work_on_run
from chatstore.operations.ledger.delete_log import due_buckets, note_deletes
from chatstore.operations.ledger.refresh import try_refresh_bucket
from chatstore.store import figures, ledger
from chatstore.store.reading.reader import read_page
from tests.chatstore.channels import (
    delete_rows,
    fresh_id,
    ids_of,
    now_ms,
    write_authorless,
    write_messages,
)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly_ledger, "BUSY_PAUSE_SECONDS", 0.1)


def make_run(channel_id: int) -> JobRun:
    """Create a run for one channel only: the deletes of other tests are left alone."""
    return JobRun.objects.create(job="bookkeeping", subject=str(channel_id), due_at=postgres_now())


def reconcile_ledger(channel_id: int) -> dict[str, int]:
    run = work_on_run(make_run(channel_id).pk)
    assert run is not None
    assert run.state == RunState.DONE, run.error
    return dict(run.result)


def sealed_bucket(number: int = 0) -> int:
    return bucket_at(now_ms()) - 10 - number


def ids_in(bucket: int, count: int) -> list[int]:
    first, last = bucket_ids(bucket)
    return [first + (last - first) // (count + 1) * number for number in range(1, count + 1)]


def emptied_bucket(channel_id: int, number: int = 0, *, kept: int = 0, count: int = 20) -> int:
    """Fill a bucket and let the authors delete all but `kept` messages an hour ago."""
    bucket = sealed_bucket(number)
    ids = ids_in(bucket, count)
    write_messages(channel_id, ids)
    delete_rows(channel_id, ids[kept:])
    note_deletes(channel_id, bucket, count - kept, sent_by=postgres_now() - dt.timedelta(hours=1))
    return bucket


def is_due(channel_id: int) -> bool:
    return BucketDeletes.objects.filter(channel_id=channel_id, is_reconciled=False).exists()


def test_a_bucket_found_empty_is_not_read_any_more() -> None:
    channel_id = fresh_id()
    empty, sparse = emptied_bucket(channel_id), emptied_bucket(channel_id, 1, kept=2)
    result = reconcile_ledger(channel_id)
    assert result == {"read": 2, "found empty": 1, "already up to date": 0, "left for the next run": 0}
    first, second = ids_in(sparse, 20)[:2]
    assert dict(ledger.read_ledger(channel_id)) == {empty: EMPTY, sparse: Live(first, second, 2)}
    assert ids_of(read_page(channel_id).messages) == [second, first]
    assert not is_due(channel_id)
    assert lock_owner(channel_id) is None


def test_a_read_records_its_figures_with_their_source() -> None:
    channel_id = fresh_id()
    bucket = emptied_bucket(channel_id, kept=2)
    reconcile_ledger(channel_id)
    noted = figures.read_figures(channel_id)[bucket]
    assert {name: figure.value for name, figure in noted.items()} == {
        "live_rows": 2,
        "authorless": 0,
        "tombstones": 18,
    }
    assert {figure.source for figure in noted.values()} == {"own read"}


def test_a_bucket_is_read_again_only_after_another_delete() -> None:
    channel_id = fresh_id()
    bucket = emptied_bucket(channel_id)
    assert reconcile_ledger(channel_id)["read"] == 1
    assert reconcile_ledger(channel_id)["read"] == 0
    note_deletes(channel_id, bucket, 1, sent_by=postgres_now())
    assert reconcile_ledger(channel_id)["read"] == 1


def test_a_bucket_recorded_by_a_later_read_is_not_read_again() -> None:
    channel_id = fresh_id()
    bucket = emptied_bucket(channel_id)
    assert try_refresh_bucket(channel_id, bucket, job="verify:1") is not None
    result = reconcile_ledger(channel_id)
    assert (result["read"], result["already up to date"]) == (0, 1)
    assert not is_due(channel_id)


def test_an_open_bucket_gets_a_lower_bound_and_is_read_again_until_sealed() -> None:
    channel_id = fresh_id()
    bucket = bucket_at(now_ms())
    fresh = first_id_at(now_ms() - 1_000)
    write_messages(channel_id, [fresh])
    note_deletes(channel_id, bucket, 3, sent_by=postgres_now() - dt.timedelta(minutes=1))
    for _ in range(2):
        assert reconcile_ledger(channel_id)["read"] == 1
        live = ledger.read_live(channel_id, bucket)
        assert live is not None
        assert live.first is not None
        assert live.first <= fresh
        assert (live.last, live.count) == (None, None)
        assert is_due(channel_id)


def test_a_bucket_with_an_orphan_row_stays_due() -> None:
    channel_id = fresh_id()
    bucket = emptied_bucket(channel_id)
    (row,) = ids_in(bucket, 1)
    write_authorless(channel_id, [row])
    assert reconcile_ledger(channel_id)["read"] == 1
    assert figures.read_figures(channel_id)[bucket]["authorless"].value == 1
    assert is_due(channel_id)


def test_a_bucket_that_was_just_cleared_is_left_for_a_later_run() -> None:
    channel_id = fresh_id()
    bucket = emptied_bucket(channel_id)
    ledger.clear_live(channel_id, bucket)
    result = reconcile_ledger(channel_id)
    # The result is stamped ten seconds back, and the clear is newer.
    assert (result["read"], result["left for the next run"]) == (0, 1)
    assert ledger.read_live(channel_id, bucket) == UNKNOWN
    assert is_due(channel_id)


def test_a_channel_locked_by_another_job_is_retried() -> None:
    channel_id = fresh_id()
    emptied_bucket(channel_id)
    lock_channel(channel_id, job="purge:1")
    assert reconcile_ledger(channel_id)["left for the next run"] == 1
    assert lock_owner(channel_id) == "purge:1"

    def unlock() -> None:
        release_channel(channel_id, job="purge:1")
        connection.close()

    giving_back = threading.Timer(0.05, unlock)
    giving_back.start()
    assert reconcile_ledger(channel_id)["read"] == 1
    giving_back.join()


def test_a_job_that_locks_the_channel_meanwhile_wins_without_waiting() -> None:
    channel_id = fresh_id()
    bucket = emptied_bucket(channel_id, kept=1)

    def take() -> None:
        assert lock_channel(channel_id, job="purge:1")

    assert try_refresh_bucket(channel_id, bucket, job="bookkeeping:1", between_pages=take) is None
    assert lock_owner(channel_id) == "purge:1"
    assert ledger.read_live(channel_id, bucket) == UNKNOWN

    def lock_and_unlock() -> None:
        assert lock_channel(channel_id, job="purge:1")
        release_channel(channel_id, job="purge:1")

    release_channel(channel_id, job="purge:1")
    assert try_refresh_bucket(channel_id, bucket, job="bookkeeping:1", between_pages=lock_and_unlock) is None
    assert ledger.read_live(channel_id, bucket) == UNKNOWN
    assert lock_owner(channel_id) is None


def test_the_run_ends_at_its_time_limit_and_the_next_one_continues(settings: Settings) -> None:
    channel_id = fresh_id()
    for number in range(3):
        emptied_bucket(channel_id, number)
    settings.BOOKKEEPING_BUCKETS = 2
    assert reconcile_ledger(channel_id)["read"] == 2
    settings.BOOKKEEPING_SECONDS = 0
    assert reconcile_ledger(channel_id)["left for the next run"] == 1
    settings.BOOKKEEPING_SECONDS = 60
    assert reconcile_ledger(channel_id)["read"] == 1
    assert not is_due(channel_id)


def test_a_run_with_an_invalid_channel_reports_it() -> None:
    run = JobRun.objects.create(job="bookkeeping", subject="general", due_at=postgres_now())
    ended = work_on_run(run.pk)
    assert ended is not None
    assert (ended.state, ended.error) == (RunState.FAILED, "“general” is not an ID: IDs are whole numbers")


@pytest.fixture
def killed_worker() -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker process that waits on standard input for the run to execute."""
    code = (
        "import sys, django; django.setup()\n"
        "from chatstore.operations.jobs.runs import work_on_run\n"
        "print('ready', flush=True)\n"
        "work_on_run(int(sys.stdin.readline()))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    yield process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


@pytest.mark.slow
def test_a_killed_run_is_continued_where_it_was(killed_worker: subprocess.Popen[bytes]) -> None:
    channel_id, buckets = fresh_id(), 60
    for number in range(buckets):
        emptied_bucket(channel_id, number, kept=1)
    run = make_run(channel_id)
    assert killed_worker.stdin is not None
    assert killed_worker.stdout is not None
    assert killed_worker.stdout.readline() == b"ready\n"
    killed_worker.stdin.write(f"{run.pk}\n".encode())
    killed_worker.stdin.flush()
    reconciled = BucketDeletes.objects.filter(channel_id=channel_id, is_reconciled=True)
    give_up = time.monotonic() + 300
    while reconciled.count() < 5:
        assert time.monotonic() < give_up
        time.sleep(0.005)
    killed_worker.send_signal(signal.SIGKILL)
    killed_worker.wait()
    before = reconciled.count()
    assert 5 <= before < buckets
    # The channel is free at once: the killed worker locked it by lease, and only for the ledger write.
    JobRun.objects.filter(pk=run.pk).update(lease_until=postgres_now() - dt.timedelta(seconds=1))
    give_up = time.monotonic() + 300
    while lock_owner(channel_id) is not None:
        assert time.monotonic() < give_up
        time.sleep(0.5)
    ended = work_on_run(run.pk)
    assert ended is not None
    assert ended.result["read"] + ended.result["already up to date"] == buckets - before
    assert due_buckets(channel_id=channel_id, limit=9) == []
    assert all(live.count == 1 for _, live in ledger.read_ledger(channel_id))
