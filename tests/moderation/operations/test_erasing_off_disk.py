"""What was erased leaves the files of every node, once each of them knows what was deleted: it is *erased* then."""

from __future__ import annotations

import datetime as dt
import os
import secrets
from collections.abc import Iterable, Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F

from chatstore.domain.buckets import bucket_of
from chatstore.domain.runs import RunState
from chatstore.local.layout import CASSANDRA_HOSTS, read_stack
from chatstore.models import JobRun
from chatstore.operations.runs import ask_run, work_on_run
from chatstore.store import cassandra, nodetool
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Erasure, Step
from moderation.operations.wiping import erase_purge
from tests.chatstore.measuring import make_room
from tests.conftest import make_user
from tests.moderation.erasures import approved, state_of
from tests.moderation.rooms import everything, make_channel, old_ids, purge_now, write
from tests.waiting import wait_until, wait_until_nothing_is_merged

pytestmark = pytest.mark.slow

BODIES = "SELECT body FROM quarantine WHERE purge_id = ? AND channel_id = ? AND bucket = ?"
ALPHABET = [chr(number) for number in range(33, 127)]


@pytest.fixture(scope="module", autouse=True)
def _room() -> None:
    make_room()


@pytest.fixture(autouse=True)
def _nothing_merges_by_itself() -> Iterator[None]:
    """Four small files in a day's window are merged, and a merge drops what is deleted before the job does."""
    for_all_nodes("disableautocompaction")
    wait_until_nothing_is_merged()
    yield
    for_all_nodes("enableautocompaction")


def for_all_nodes(command: str) -> None:
    for host in CASSANDRA_HOSTS:
        nodetool.run(host, command, settings.CASSANDRA["keyspace"], "messages", "quarantine")


def work(job: str, otto: User, subject: str = "") -> JobRun:
    done = work_on_run(ask_run(job, actor=otto, subject=subject).pk)
    assert done is not None
    assert (done.state, done.error) == (RunState.DONE, "")
    return done


def files_with(table: str, wanted: Iterable[bytes]) -> int:
    """How many data files of a table, over both nodes, have one of these bytes as they are."""
    keyspace = settings.CASSANDRA["keyspace"]
    found = 0
    for path in read_stack(os.environ).folder.rglob(f"data/{keyspace}/{table}-*/*-Data.db"):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            # Compacted away while we looked.
            continue
        found += any(words in data for words in wanted)
    return found


def test_the_files_have_it_until_a_repair_and_a_run_have_passed(mona: User, otto: User, ada: User) -> None:
    channel, ids = make_channel(), old_ids(20)
    subject = f"{channel.pk}:{bucket_of(ids[0])}"
    # Nothing to be compressed, so that it stands in the files as it was written.
    said = "".join(secrets.choice(ALPHABET) for _ in range(120))
    write(channel, ids, content=said)
    for_all_nodes("flush")
    purge = purge_now(mona, everything(channel))
    (body,), *_ = cassandra.execute(BODIES, (purge.pk, channel.pk, bucket_of(ids[0])))
    for_all_nodes("flush")
    in_messages, in_quarantine = [said[start : start + 40].encode() for start in (0, 40, 80)], [body[60:92]]
    assert files_with("messages", in_messages) >= 2
    assert files_with("quarantine", in_quarantine) >= 2

    approved(purge, make_user("lena", group="leads"), ada)
    assert erase_purge(purge.pk)
    assert work("erase", otto).did["waiting for a repair"] >= 1
    erasure = Erasure.objects.get(purge=purge)
    assert erasure.wait_reason.startswith("for a full repair of messages that begins after")
    assert (erasure.off_disk_at, state_of(purge)) == (None, PurgeState.ERASING)
    assert files_with("messages", in_messages) >= 2

    # As if the repair came later than by the skew of two clocks.
    Step.objects.filter(purge=purge).update(counted_at=F("counted_at") - dt.timedelta(minutes=1))
    work("repair_bucket", otto, subject)
    assert work("erase", otto).did["erased"] >= 1
    erasure.refresh_from_db()
    assert (erasure.off_disk_at is not None, erasure.wait_reason, state_of(purge)) == (True, "", PurgeState.ERASED)
    wait_until(lambda: files_with("messages", in_messages) == 0)
    wait_until(lambda: files_with("quarantine", in_quarantine) == 0)
    assert AuditEntry.objects.filter(purge=purge, act="erased").count() == 1
    # Nothing is left to do for it.
    work("erase", otto)
    assert AuditEntry.objects.filter(purge=purge, act="erased").count() == 1
