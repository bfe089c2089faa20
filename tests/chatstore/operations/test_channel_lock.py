"""One job a channel."""

import threading
import time

from django.db import connection

from chatstore.models import ChannelLock
from chatstore.operations.channel_lock import hold_channel, holder_of, release_channel, renew_hold
from tests.chatstore.arranging import fresh_id


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
