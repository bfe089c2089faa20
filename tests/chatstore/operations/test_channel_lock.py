"""A channel is locked by at most one job."""

import threading
import time
from collections.abc import Callable

from django.db import connection, transaction

from chatstore.models import ChannelLock
from chatstore.operations.coordination.channel_lock import (
    lock_channel,
    lock_channels,
    lock_owner,
    release_channel,
    release_channels,
    renew_lock,
    renew_locks,
)
from tests.chatstore.channels import fresh_id
from tests.waiting import wait_until


def test_a_channel_is_locked_by_one_job_at_a_time() -> None:
    channel_id = fresh_id()
    assert lock_owner(channel_id) is None
    assert lock_channel(channel_id, job="purge 1")
    assert not lock_channel(channel_id, job="purge 2")
    assert not lock_channel(channel_id, job="import 3", lease_seconds=60)
    assert lock_owner(channel_id) == "purge 1"
    release_channel(channel_id, job="purge 1")
    assert lock_owner(channel_id) is None
    assert lock_channel(channel_id, job="purge 2")


def test_locking_twice_has_no_further_effect() -> None:
    channel_id = fresh_id()
    assert lock_channel(channel_id, job="purge 1")
    since = ChannelLock.objects.get(channel_id=channel_id).since
    assert lock_channel(channel_id, job="purge 1")
    assert ChannelLock.objects.get(channel_id=channel_id).since == since


def test_the_lock_of_another_job_is_not_released() -> None:
    channel_id = fresh_id()
    lock_channel(channel_id, job="purge 1")
    release_channel(channel_id, job="purge 2")
    assert lock_owner(channel_id) == "purge 1"


def test_a_lock_without_a_lease_never_lapses_and_one_with_a_lease_does() -> None:
    lasting, leased = fresh_id(), fresh_id()
    assert lock_channel(lasting, job="purge 1")
    assert lock_channel(leased, job="import 1", lease_seconds=0.05)
    time.sleep(0.1)
    assert not lock_channel(lasting, job="import 2", lease_seconds=60)
    assert lock_owner(leased) is None
    assert lock_channel(leased, job="purge 2")
    assert lock_owner(leased) == "purge 2"


def test_a_lease_is_renewed_only_by_its_owner() -> None:
    channel_id = fresh_id()
    lock_channel(channel_id, job="import 1", lease_seconds=0.05)
    assert renew_lock(channel_id, job="import 1", lease_seconds=60)
    time.sleep(0.1)
    assert lock_owner(channel_id) == "import 1"
    assert not renew_lock(channel_id, job="import 2", lease_seconds=60)


def test_a_lapsed_lease_that_was_taken_over_is_lost() -> None:
    channel_id = fresh_id()
    lock_channel(channel_id, job="import 1", lease_seconds=0)
    time.sleep(0.01)
    assert lock_channel(channel_id, job="purge 2")
    assert not renew_lock(channel_id, job="import 1", lease_seconds=60)
    release_channel(channel_id, job="import 1")
    assert lock_owner(channel_id) == "purge 2"


def test_only_one_of_many_concurrent_jobs_locks_the_channel() -> None:
    channel_id = fresh_id()
    got: list[str] = []

    def try_to_lock(job: str) -> None:
        if lock_channel(channel_id, job=job):
            got.append(job)
        connection.close()

    threads = [threading.Thread(target=try_to_lock, args=(f"purge {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [lock_owner(channel_id)]


def test_of_many_channels_only_unlocked_ones_are_locked() -> None:
    free, locked, lapsed = (fresh_id() for _ in range(3))
    lock_channel(locked, job="purge 1")
    lock_channel(lapsed, job="import 1", lease_seconds=0)
    time.sleep(0.01)
    assert lock_channels([lapsed, locked, free], job="import 2", lease_seconds=60) == {free, lapsed}
    assert [lock_owner(one) for one in (free, locked, lapsed)] == ["import 2", "purge 1", "import 2"]
    release_channels([free, locked, lapsed], job="import 2")
    assert [lock_owner(one) for one in (free, locked, lapsed)] == [None, "purge 1", None]


def _in_a_thread(function: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            function()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_locking_many_channels_does_not_wait_for_a_job_that_releases_some() -> None:
    first, second = sorted(fresh_id() for _ in range(2))
    lock_channels([first, second], job="purge 1", lease_seconds=60)
    got: list[frozenset[int]] = []
    with transaction.atomic():
        release_channel(second, job="purge 1")
        thread = _in_a_thread(lambda: got.append(lock_channels([first, second], job="import 2", lease_seconds=60)))
        thread.join(10)
        assert got == [frozenset()], "it waited"
        release_channel(first, job="purge 1")
    thread.join()


def test_many_leases_are_renewed_in_the_order_of_their_channels() -> None:
    first, second = sorted(fresh_id() for _ in range(2))
    for channel_id in (second, first):
        lock_channel(channel_id, job="import 1", lease_seconds=60)
    with transaction.atomic():
        ChannelLock.objects.select_for_update().get(channel_id=first)
        thread = _in_a_thread(lambda: renew_locks([second, first], job="import 1", lease_seconds=60))
        wait_until(_is_lock_waited_for, seconds=30)
        assert ChannelLock.objects.select_for_update(nowait=True).get(channel_id=second)
    thread.join()


def _is_lock_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
