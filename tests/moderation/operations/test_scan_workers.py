"""Idle workers are invited to the scans that are running, and take turns at them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from django.db import connection

from chatstore.models.users import User
from moderation import tasks
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge, ScanPart
from moderation.operations.preview import bucket_reads, scan, scan_parts
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging import turns
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.purging.scheduling import joinable_scans, reserve_wakeup
from moderation.operations.purging.turns import does_another_wait
from moderation.store import active_workers
from tests.moderation.channels import make_channel, old_ids, write
from tests.waiting import LIMIT_SECONDS

BUCKETS = 12


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Freeze buckets one by one; list parts of three buckets. Scans of other tests are none of these workers'."""
    monkeypatch.setattr(bucket_reads, "PLAN_ROWS", 1)
    monkeypatch.setattr(scan, "FIRST_BUCKETS", 1)
    monkeypatch.setattr(scan_parts, "PART_BUCKETS", 3)
    Purge.objects.update(wakeup_expires_at=None)
    ScanPart.objects.all().delete()
    active_workers.clear_join(is_scan=True)
    yield
    active_workers.clear_join(is_scan=True)


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> SimpleQueue[int | None]:
    """Return the queue of the scans for which `scan_purge` was enqueued, and None for each `join_scan`."""
    queue: SimpleQueue[int | None] = SimpleQueue()

    def delay(purge_id: int) -> object:
        queue.put(purge_id)
        return object()

    monkeypatch.setattr(tasks.scan_purge, "delay", delay)
    monkeypatch.setattr(tasks.join_scan, "apply_async", lambda **_: queue.put(None))
    return queue


def draft(moderator: User) -> Purge:
    channel, author = make_channel(), secrets.randbits(60)
    for ago in range(2 + BUCKETS, 2, -1):
        write(channel, old_ids(3, buckets_ago=ago), author=author)
    return draft_purge(moderator=moderator, selection=Selection(channel_ids=(channel.pk,), where=Author((author,))))


def begin(moderator: User) -> Purge:
    """Draft a scan, list its parts and scan its first two buckets."""
    purge = draft(moderator)
    scan_purge(purge.pk, ends_turn=iter([False, True]).__next__)
    assert joinable_scans().filter(pk=purge.pk).exists()
    return purge


def drain(queue: SimpleQueue[int | None]) -> list[int | None]:
    return [queue.get() for _ in range(queue.qsize())]


def test_a_worker_is_invited_when_there_are_parts_for_it(mona: User, enqueued: SimpleQueue[int | None]) -> None:
    purge = draft(mona)
    tasks.scan_purge(purge.pk)
    assert drain(enqueued) == [None]
    purge.refresh_from_db()
    assert purge.state == PurgeState.READY
    # Nothing is left to join.
    tasks.join_scan()
    assert drain(enqueued) == []


def test_no_worker_is_invited_to_a_scan_without_parts(
    mona: User, enqueued: SimpleQueue[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_parts, "PART_BUCKETS", BUCKETS)
    purge = draft(mona)
    tasks.scan_purge(purge.pk)
    assert drain(enqueued) == []


def test_an_invited_worker_takes_a_scan_that_waits_before_it_joins_one(
    mona: User, enqueued: SimpleQueue[int | None]
) -> None:
    running, waiting = begin(mona), draft(mona)
    assert reserve_wakeup(waiting.pk)
    tasks.join_scan()
    running.refresh_from_db()
    waiting.refresh_from_db()
    assert (running.state, waiting.state) == (PurgeState.SCANNING, PurgeState.READY)
    tasks.join_scan()
    running.refresh_from_db()
    assert running.state == PurgeState.READY


def test_a_scan_that_one_worker_leaves_to_another_waits_for_no_turn(
    mona: User, enqueued: SimpleQueue[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)
    purge, other = begin(mona), draft(mona)
    assert reserve_wakeup(other.pk)

    def leave_at_once() -> bool:
        tasks._run_scan_turn(purge.pk)
        return True

    # The nested worker ends its turn while this one still has its part.
    scan_purge(purge.pk, ends_turn=leave_at_once)
    assert purge.pk not in drain(enqueued)
    assert not does_another_wait(other.pk)
    tasks._run_scan_turn(purge.pk)
    assert drain(enqueued) == [purge.pk]


def test_a_poll_invites_a_worker_to_a_scan_whose_invitation_was_lost(
    mona: User, enqueued: SimpleQueue[int | None]
) -> None:
    purge = begin(mona)
    tasks.poll_due_purges()
    queued = drain(enqueued)
    assert None in queued
    assert purge.pk in queued


@pytest.mark.parametrize(("scans", "workers"), [(2, 3), (3, 2)])
def test_workers_at_several_scans_take_turns_until_all_are_done(
    mona: User, enqueued: SimpleQueue[int | None], monkeypatch: pytest.MonkeyPatch, scans: int, workers: int
) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)
    monkeypatch.setattr(tasks, "INVITATION_SECONDS", 0)
    purges = [draft(mona) for _ in range(scans)]
    scanned_at_first_end: list[int] = []

    def note_first_end(purge_id: int, **options: Callable[[], Any]) -> None:
        scan_purge(purge_id, **options)
        if not scanned_at_first_end and len(scanning := left(purges)) < scans:
            scanned_at_first_end.extend(purge.scanned for purge in scanning)

    monkeypatch.setattr(scan, "scan_purge", note_first_end)
    for purge in purges:
        tasks.enqueue_scan(purge.pk)
    threads = [threading.Thread(target=partial(work, enqueued, purges)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    assert left(purges) == []
    # None had to wait for another one's end.
    assert min(scanned_at_first_end, default=1) > 0
    for purge in purges:
        purge.refresh_from_db()
        assert (purge.state, purge.manifest, purge.scanned) == (PurgeState.READY, BUCKETS * 3, BUCKETS * 3)


def work(queue: SimpleQueue[int | None], purges: list[Purge]) -> None:
    """Execute tasks like a worker process, until the scans have ended."""
    try:
        while left(purges):
            try:
                purge_id = queue.get(timeout=0.05)
            except Empty:
                continue
            if purge_id is None:
                tasks.join_scan()
            else:
                tasks.scan_purge(purge_id)
    finally:
        connection.close()


def left(purges: list[Purge]) -> list[Purge]:
    return list(Purge.objects.filter(pk__in=[purge.pk for purge in purges], state=PurgeState.SCANNING))
