"""A channel is locked by at most one job."""

import threading
import time
from collections.abc import Callable

from django.db import connection, transaction

from chatstore.models import ChannelLock
from chatstore.operations.coordination.channel_lock import (
    hold_channel,
    hold_channels,
    holder_of,
    release_channel,
    release_channels,
    renew_hold,
    renew_holds,
)
from tests.chatstore.arranging import fresh_id
from tests.waiting import wait_until


def test_a_channel_is_held_by_one_job_at_a_time() -> None:
    channel_id = fresh_id()
    assert holder_of(channel_id) is None
    assert hold_channel(channel_id, job="purge 1")
    assert not hold_channel(channel_id, job="purge 2")
    assert not hold_channel(channel_id, job="import 3", lease_seconds=60)
    assert holder_of(channel_id) == "purge 1"
    release_channel(channel_id, job="purge 1")
    assert holder_of(channel_id) is None
    assert hold_channel(channel_id, job="purge 2")


def test_holding_twice_is_holding_once() -> None:
    channel_id = fresh_id()
    assert hold_channel(channel_id, job="purge 1")
    since = ChannelLock.objects.get(channel_id=channel_id).since
    assert hold_channel(channel_id, job="purge 1")
    assert ChannelLock.objects.get(channel_id=channel_id).since == since


def test_another_jobs_hold_is_not_given_back() -> None:
    channel_id = fresh_id()
    hold_channel(channel_id, job="purge 1")
    release_channel(channel_id, job="purge 2")
    assert holder_of(channel_id) == "purge 1"


def test_a_hold_without_a_lease_never_lapses_and_one_with_a_lease_does() -> None:
    lasting, leased = fresh_id(), fresh_id()
    assert hold_channel(lasting, job="purge 1")
    assert hold_channel(leased, job="import 1", lease_seconds=0.05)
    time.sleep(0.1)
    assert not hold_channel(lasting, job="import 2", lease_seconds=60)
    assert holder_of(leased) is None
    assert hold_channel(leased, job="purge 2")
    assert holder_of(leased) == "purge 2"


def test_a_lease_is_renewed_only_by_its_holder() -> None:
    channel_id = fresh_id()
    hold_channel(channel_id, job="import 1", lease_seconds=0.05)
    assert renew_hold(channel_id, job="import 1", lease_seconds=60)
    time.sleep(0.1)
    assert holder_of(channel_id) == "import 1"
    assert not renew_hold(channel_id, job="import 2", lease_seconds=60)


def test_a_lapsed_lease_that_was_taken_over_is_lost() -> None:
    channel_id = fresh_id()
    hold_channel(channel_id, job="import 1", lease_seconds=0)
    time.sleep(0.01)
    assert hold_channel(channel_id, job="purge 2")
    assert not renew_hold(channel_id, job="import 1", lease_seconds=60)
    release_channel(channel_id, job="import 1")
    assert holder_of(channel_id) == "purge 2"


def test_of_many_jobs_at_once_one_gets_the_channel() -> None:
    channel_id = fresh_id()
    got: list[str] = []

    def try_to_hold(job: str) -> None:
        if hold_channel(channel_id, job=job):
            got.append(job)
        connection.close()

    threads = [threading.Thread(target=try_to_hold, args=(f"purge {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [holder_of(channel_id)]


def test_of_many_channels_those_are_taken_that_no_other_job_holds() -> None:
    free, held, lapsed = (fresh_id() for _ in range(3))
    hold_channel(held, job="purge 1")
    hold_channel(lapsed, job="import 1", lease_seconds=0)
    time.sleep(0.01)
    assert hold_channels([lapsed, held, free], job="import 2", lease_seconds=60) == {free, lapsed}
    assert [holder_of(one) for one in (free, held, lapsed)] == ["import 2", "purge 1", "import 2"]
    release_channels([free, held, lapsed], job="import 2")
    assert [holder_of(one) for one in (free, held, lapsed)] == [None, "purge 1", None]


def _in_a_thread(act: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_who_takes_many_channels_does_not_wait_for_a_job_that_gives_some_back() -> None:
    first, second = sorted(fresh_id() for _ in range(2))
    hold_channels([first, second], job="purge 1", lease_seconds=60)
    got: list[frozenset[int]] = []
    with transaction.atomic():
        release_channel(second, job="purge 1")
        thread = _in_a_thread(lambda: got.append(hold_channels([first, second], job="import 2", lease_seconds=60)))
        thread.join(10)
        assert got == [frozenset()], "it waited"
        release_channel(first, job="purge 1")
    thread.join()


def test_many_leases_are_renewed_in_the_order_of_their_channels() -> None:
    first, second = sorted(fresh_id() for _ in range(2))
    for channel_id in (second, first):
        hold_channel(channel_id, job="import 1", lease_seconds=60)
    with transaction.atomic():
        ChannelLock.objects.select_for_update().get(channel_id=first)
        thread = _in_a_thread(lambda: renew_holds([second, first], job="import 1", lease_seconds=60))
        wait_until(_something_waits, seconds=30)
        assert ChannelLock.objects.select_for_update(nowait=True).get(channel_id=second)
    thread.join()


def _something_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
