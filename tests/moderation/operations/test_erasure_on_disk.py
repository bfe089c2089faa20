"""Erased messages leave the files of every node once all nodes have the deletes; then the purge is *erased*."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.domain.runs import RunState
from chatstore.local.layout import CASSANDRA_HOSTS, read_stack
from chatstore.models import Channel, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import request_run, work_on_run
from chatstore.store import cassandra, nodetool
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Erasure, Purge, Step
from moderation.operations.erasure.execution import erase_purge
from tests.chatstore.top_partition_lists import make_room_in_lists
from tests.conftest import make_user
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, write
from tests.moderation.erasures import request_and_approve, state_of
from tests.moderation.faults import blocking_nodetool
from tests.moderation.faults.real_workers.workers import worker_environment
from tests.waiting import wait_until, wait_until_nothing_is_merged

pytestmark = pytest.mark.slow

BODIES = "SELECT body FROM quarantine WHERE purge_id = ? AND channel_id = ? AND bucket = ?"
ALPHABET = [chr(number) for number in range(33, 127)]


@pytest.fixture(scope="module", autouse=True)
def _room_in_lists() -> None:
    make_room_in_lists()


@pytest.fixture(autouse=True)
def _no_automatic_compaction() -> Iterator[None]:
    """Prevent automatic compaction: four small files of a day would be compacted and drop deleted data early."""
    for_all_nodes("disableautocompaction")
    wait_until_nothing_is_merged()
    yield
    for_all_nodes("enableautocompaction")


def for_all_nodes(command: str) -> None:
    for host in CASSANDRA_HOSTS:
        nodetool.run(host, command, settings.CASSANDRA["keyspace"], "messages", "quarantine")


def work(job: str, otto: User, subject: str = "") -> JobRun:
    done = work_on_run(request_run(job, actor=otto, subject=subject).pk)
    assert done is not None
    assert (done.state, done.error) == (RunState.DONE, "")
    return done


def files_with(table: str, wanted: Iterable[bytes]) -> int:
    """Return the number of data files of a table, on both nodes, that contain one of the byte strings."""
    keyspace = settings.CASSANDRA["keyspace"]
    found = 0
    for path in read_stack(os.environ).folder.rglob(f"data/{keyspace}/{table}-*/*-Data.db"):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            # Compacted away in the meantime.
            continue
        found += any(words in data for words in wanted)
    return found


@dataclass(frozen=True, slots=True)
class InFiles:
    """Traces of a purged message in the data files: parts of its text and of its copy."""

    channel: Channel
    purge: Purge
    subject: str
    in_messages: list[bytes]
    in_quarantine: list[bytes]

    def files(self) -> tuple[int, int]:
        """Return the numbers of files of both tables with traces."""
        return files_with("messages", self.in_messages), files_with("quarantine", self.in_quarantine)

    def repair(self, otto: User) -> None:
        """Simulate a repair that started later than the allowed clock skew."""
        Step.objects.filter(purge=self.purge).update(counted_at=F("counted_at") - dt.timedelta(minutes=1))
        work("repair_bucket", otto, self.subject)


@pytest.fixture
def erased(mona: User, ada: User) -> InFiles:
    """Return an erased purge whose copies are unreadable and flushed on every node."""
    channel, ids = make_channel(), old_ids(20)
    # Incompressible text, so that the files contain it literally.
    text = "".join(secrets.choice(ALPHABET) for _ in range(120))
    write(channel, ids, content=text)
    for_all_nodes("flush")
    purge = purge_now(mona, everything(channel))
    (body,), *_ = cassandra.execute(BODIES, (purge.pk, channel.pk, bucket_of(ids[0])))
    for_all_nodes("flush")
    in_messages = [text[start : start + 40].encode() for start in (0, 40, 80)]
    found = InFiles(channel, purge, f"{channel.pk}:{bucket_of(ids[0])}", in_messages, [body[60:92]])
    assert min(found.files()) >= 2
    request_and_approve(purge, make_user("lena", group="leads"), ada)
    assert erase_purge(purge.pk)
    return found


def test_data_files_contain_the_text_until_a_repair_and_a_run_have_finished(otto: User, erased: InFiles) -> None:
    purge = erased.purge
    assert work("erase", otto).result["waiting for a repair"] >= 1
    erasure = Erasure.objects.get(purge=purge)
    assert erasure.wait_reason.startswith("Waiting for a full repair of messages that begins after")
    assert (erasure.off_disk_at, state_of(purge)) == (None, PurgeState.ERASING)
    assert files_with("messages", erased.in_messages) >= 2

    erased.repair(otto)
    assert work("erase", otto).result["erased"] >= 1
    erasure.refresh_from_db()
    assert (erasure.off_disk_at is not None, erasure.wait_reason, state_of(purge)) == (True, "", PurgeState.ERASED)
    wait_until(lambda: erased.files() == (0, 0))
    assert AuditEntry.objects.filter(purge=purge, action="erased").count() == 1
    # The job has nothing left to do.
    work("erase", otto)
    assert AuditEntry.objects.filter(purge=purge, action="erased").count() == 1


NIGHTS = [f"{when} {host}" for host in CASSANDRA_HOSTS for when in ("before", "after")]

WORK_ON_RUN = """import sys, django
django.setup()
from chatstore.operations.jobs.runs import work_on_run
work_on_run(int(sys.argv[1]))
"""


def killed_in_garbagecollect(run: JobRun, folder: Path, where: str) -> None:
    """Run the job in a worker that is killed during or right after `garbagecollect` on a node."""
    (folder / "stop").write_text(where)
    (folder / "waits").unlink(missing_ok=True)
    stopping = [sys.executable, str(Path(blocking_nodetool.__file__)), str(folder), "{host}"]
    worker = subprocess.Popen(
        [sys.executable, "-c", WORK_ON_RUN, str(run.pk)],
        cwd=settings.BASE_DIR,
        env=os.environ | worker_environment() | {"NODETOOL": f"{shlex.join(stopping)} {settings.NODETOOL}"},
    )
    wait_until(lambda: (folder / "waits").exists() or worker.poll() is not None)
    assert worker.poll() is None, "it ended without having come there"
    worker.kill()
    worker.wait()
    # As if its lease of a minute had expired.
    assert JobRun.objects.filter(pk=run.pk, state=RunState.RUNNING).update(lease_until=postgres_now()) == 1


def test_an_erasure_is_final_only_after_every_node_ran_garbagecollect(
    otto: User, erased: InFiles, tmp_path: Path
) -> None:
    erased.repair(otto)
    for where in NIGHTS:
        night = JobRun.objects.create(job="erase", slot=secrets.token_hex(8), due_at=postgres_now())
        killed_in_garbagecollect(night, tmp_path, where)
        assert Erasure.objects.get(purge=erased.purge).off_disk_at is None
        assert state_of(erased.purge) == PurgeState.ERASING
    # Each night started with the first node again; the second node was reached twice.
    first, second = sorted(CASSANDRA_HOSTS)
    assert (tmp_path / "done").read_text().split() == [first, first, first, second]
    # The next night finishes it; a worker that finds the interrupted run has nothing left to do.
    next_night = JobRun.objects.create(job="erase", slot=secrets.token_hex(8), due_at=postgres_now())
    for run in (next_night, night):
        done = work_on_run(run.pk)
        assert done is not None
        assert (done.state, done.error) == (RunState.DONE, "")
    assert state_of(erased.purge) == PurgeState.ERASED
    wait_until(lambda: erased.files() == (0, 0))
    assert AuditEntry.objects.filter(purge=erased.purge, action="erased").count() == 1
