"""A bucket's tombstones are dropped only when every replica has them and no older write can arrive any more."""

import datetime as dt
import threading
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import F
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.runs import RunState
from chatstore.models import BucketDeletes
from chatstore.models.users import User
from chatstore.operations.bucket_jobs.compaction import Obstacle, Remedy, find_obstacle
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.jobs.runs import request_run, work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import messages
from tests.chatstore.channels import delete_rows, fresh_id, now_ms, write_messages
from tests.chatstore.top_partition_lists import make_room_in_lists
from tests.waiting import wait_until

BUCKET = bucket_at(now_ms()) - 5


@pytest.fixture(scope="module", autouse=True)
def _room_in_lists() -> None:
    make_room_in_lists()


def age_deletes(channel_id: int, age: dt.timedelta) -> None:
    """Move the bucket's deletes back by `age`."""
    noted = BucketDeletes.objects.filter(channel_id=channel_id, bucket=BUCKET)
    noted.update(last_at=F("last_at") - age, hour=F("hour") - age)


def obstacle_of(channel_id: int) -> Obstacle:
    obstacle = find_obstacle(channel_id, BUCKET)
    assert obstacle is not None
    return obstacle


def run(job: str, otto: User, channel_id: int) -> dict[str, object]:
    done = work_on_run(request_run(job, actor=otto, subject=f"{channel_id}:{BUCKET}").pk)
    assert done is not None
    assert (done.state, done.error) == (RunState.DONE, "")
    return dict(done.result)


@pytest.mark.slow
def test_tombstones_are_purged_after_a_repair_and_gc_grace_on_every_replica(otto: User) -> None:
    channel_id = fresh_id()
    first, _ = bucket_ids(BUCKET)
    ids = [first + number for number in range(1, 31)]
    write_messages(channel_id, ids)
    delete_rows(channel_id, ids[:12])
    note_deletes(channel_id, BUCKET, 12)
    obstacle = obstacle_of(channel_id)
    assert "Repair it first." in obstacle.reason
    assert obstacle.remedy is Remedy.REPAIR

    run("repair_bucket", otto, channel_id)
    obstacle = obstacle_of(channel_id)
    assert "does not cover the last delete here" in obstacle.reason
    assert obstacle.remedy is Remedy.REPAIR
    age_deletes(channel_id, dt.timedelta(hours=47))
    obstacle = obstacle_of(channel_id)
    assert "is younger than gc_grace" in obstacle.reason
    assert obstacle.remedy is Remedy.GC_GRACE
    refused = work_on_run(request_run("compact", actor=otto, subject=f"{channel_id}:{BUCKET}").pk)
    assert refused is not None
    assert refused.state == RunState.FAILED
    assert "is younger than gc_grace" in refused.error

    age_deletes(channel_id, dt.timedelta(hours=2))
    assert find_obstacle(channel_id, BUCKET) is None
    result = run("compact", otto, channel_id)
    assert result["tombstones before"] == 12
    assert (result["tombstones on 127.0.0.1"], result["tombstones on 127.0.0.2"]) == (0, 0)
    left = [row[0] for page in messages.read_ids(channel_id, BUCKET) for row in page]
    assert sorted(left) == ids[12:]


@pytest.mark.slow
def test_tombstones_are_kept_while_another_job_may_be_deleting_there(otto: User) -> None:
    channel_id = fresh_id()
    write_messages(channel_id, [bucket_ids(BUCKET)[0] + 1])
    run("repair_bucket", otto, channel_id)
    assert find_obstacle(channel_id, BUCKET) is None
    assert lock_channel(channel_id, job="purge:7")
    obstacle = obstacle_of(channel_id)
    assert obstacle.reason.startswith("The channel is locked by purge 7")
    assert obstacle.remedy is Remedy.OTHER
    release_channel(channel_id, job="purge:7")
    assert find_obstacle(channel_id, BUCKET) is None


@pytest.mark.slow
def test_a_delete_during_the_flush_keeps_its_tombstone(otto: User, settings: Settings, tmp_path: Path) -> None:
    channel_id = fresh_id()
    first, _ = bucket_ids(BUCKET)
    write_messages(channel_id, [first + number for number in range(1, 11)])
    run("repair_bucket", otto, channel_id)
    flushing, deleted, called = tmp_path / "flushing", tmp_path / "deleted", tmp_path / "called"
    nodetool = tmp_path / "nodetool.sh"
    nodetool.write_text(
        f'host=$1; shift; echo "$1" >> {called}\n'
        f'[ "$1" = flush ] && touch {flushing} && while [ ! -e {deleted} ]; do sleep 0.05; done\n'
        f'exec {settings.NODETOOL.replace("{host}", "$host")} "$@"\n'
    )
    settings.NODETOOL = f"sh {nodetool} {{host}}"
    requested = request_run("compact", actor=otto, subject=f"{channel_id}:{BUCKET}")

    def work() -> None:
        try:
            work_on_run(requested.pk)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    wait_until(flushing.exists)
    note_deletes(channel_id, BUCKET, 1)
    delete_rows(channel_id, [first + 1])
    deleted.touch()
    worker.join()
    requested.refresh_from_db()
    assert requested.state == RunState.FAILED
    assert "does not cover the last delete here" in requested.error
    assert set(called.read_text().split()) == {"flush"}


def test_compaction_runs_on_every_replica_and_keeps_live_rows(otto: User) -> None:
    channel_id = fresh_id()
    first, _ = bucket_ids(BUCKET)
    write_messages(channel_id, [first + number for number in range(1, 11)])
    delete_rows(channel_id, [first + 1])
    assert run("merge", otto, channel_id) == {"replicas": 2}
    assert sum(len(page) for page in messages.read_ids(channel_id, BUCKET)) == 9
