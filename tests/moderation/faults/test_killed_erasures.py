"""An erasure worker is killed at every write and state change: another one finishes, and no copy stays readable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest
from django.conf import settings

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel, ChannelLock
from chatstore.models.users import User
from chatstore.store import cassandra
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Erasure, Purge
from moderation.operations.erasure.execution import due_erasures, erase_purge
from moderation.operations.preview.manifest import list_manifest
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, WILMA, make_channel, old_ids, purge_now, run_to_end, write
from tests.moderation.erasures import SELECT_CHUNKS, request_and_approve, state_of
from tests.moderation.faults.crashing_eraser import COMMAND
from tests.moderation.faults.real_workers.workers import worker_environment
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CRASH_POINTS = (
    "erasure.stamp, 1",
    "insert auditentry, 1",
    "erasure.lease_until, 1",
    "commit, 1",
    "insert channellock, 1",
    "delete quarantine, 1",
    "delete quarantine, 2",
    "select quarantine, 1",
    "select quarantine, 2",
    "delete channellock, 1",
    "commit, 2",
    "erasure.channels_left, 1",
    "commit, 3",
    "insert channellock, 2",
    "delete quarantine, 3",
    "select quarantine, 3",
    "delete channellock, 2",
    "commit, 4",
    "erasure.channels_left, 2",
    "commit, 5",
    "erasure.wait_reason, 1",
    "erasure.unreadable_at, 1",
    "insert auditentry, 2",
    "commit, 6",
    "done, 1",
)
"""Crash points in order, for two channels of which the first has two buckets."""

IDS = [*old_ids(20, buckets_ago=4), *old_ids(20)]


@dataclass(frozen=True, slots=True)
class Scene:
    """Two channels with messages of Victor, the first also of Wilma; a purge per author, Victor's to be erased."""

    channels: tuple[Channel, Channel]
    purge: Purge
    other: Purge

    def copies_of(self, purge: Purge) -> list[int]:
        """Return the number of chunks per bucket that the purge keeps, read from every replica."""
        first, second = self.channels
        places = ((first, IDS[0]), (first, IDS[-1]), (second, IDS[-1]))
        return [
            len(cassandra.execute(SELECT_CHUNKS, (purge.pk, channel.pk, bucket_of(i)), consistency=cassandra.ALL))
            for channel, i in places
        ]


@pytest.fixture
def scene(mona: User, ada: User) -> Scene:
    first, second = sorted((make_channel(), make_channel()), key=lambda channel: channel.pk)
    write(first, IDS[::2])
    write(first, IDS[1::2], author=WILMA)
    write(second, IDS[20:])
    both = (first.pk, second.pk)
    purge, other = (purge_now(mona, Selection(channel_ids=both, where=Author((author,)))) for author in (VICTOR, WILMA))
    request_and_approve(purge, make_user("lena", group="leads"), ada)
    scene = Scene((first, second), purge, other)
    assert (scene.copies_of(purge), scene.copies_of(other)) == ([1, 1, 1], [1, 1, 0])
    return scene


def erase_in_process(purge: Purge, *crash_point: str) -> tuple[int, list[str]]:
    """Execute the erasure in a separate process; return its exit code and the crash points reached."""
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, str(purge.pk), *crash_point],
        cwd=settings.BASE_DIR,
        env=os.environ | worker_environment() | {"PURGE_LEASE_SECONDS": "2"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout.splitlines()


def test_an_erasure_reaches_exactly_these_crash_points(mona: User, scene: Scene) -> None:
    """A write that is missing here would be a crash point that is not tested."""
    assert erase_in_process(scene.purge) == (0, list(CRASH_POINTS))
    assert scene.copies_of(scene.purge) == [0, 0, 0]
    # The other purge has all the copies in the same buckets that its own undo needs.
    undo = request_undo(scene.other.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(scene.other)
    assert undo_totals_of(undo).restored == 20


@pytest.mark.parametrize("crash_point", CRASH_POINTS)
def test_a_second_worker_finishes_after_a_kill_at_any_crash_point(mona: User, scene: Scene, crash_point: str) -> None:
    purge, other = scene.purge, scene.other
    counts, others_counts = totals_of(purge), totals_of(other)
    code, reached = erase_in_process(purge, crash_point)
    assert code == -signal.SIGKILL
    assert reached == list(CRASH_POINTS[: CRASH_POINTS.index(crash_point) + 1])
    erasure = Erasure.objects.get(purge=purge)
    if crash_point == CRASH_POINTS[-1]:
        assert erasure.unreadable_at is not None
        assert purge.pk not in due_erasures()
    else:
        # The erasure is not reported as done, and no other worker takes it before the dead worker's lease has ended.
        assert erasure.unreadable_at is None
        wait_until(lambda: purge.pk in due_erasures())
        assert erase_purge(purge.pk)
    assert scene.copies_of(purge) == [0, 0, 0]
    assert all(entry.message is None for entry in list_manifest(mona, purge).entries)
    erasure.refresh_from_db()
    assert (erasure.unreadable_at is not None, erasure.channels_left, erasure.wait_reason) == (True, [], "")
    assert (state_of(purge), totals_of(purge), purge.pk in due_erasures()) == (PurgeState.ERASING, counts, False)
    actions = AuditEntry.objects.filter(purge=purge, action__in=("erase_started", "erase_unreadable")).order_by("id")
    assert list(actions.values_list("action", flat=True)) == ["erase_started", "erase_unreadable"]
    assert not ChannelLock.objects.filter(channel_id__in=[channel.pk for channel in scene.channels]).exists()
    assert (scene.copies_of(other), totals_of(other)) == ([1, 1, 0], others_counts)
