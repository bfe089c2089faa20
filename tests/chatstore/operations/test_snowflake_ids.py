"""New ids: each generator leases its own worker number, which is never shared or renewed after it lapsed."""

import multiprocessing
import time
from multiprocessing.connection import Connection

import pytest
from django.db import connection

from chatstore.models import WorkerLease
from chatstore.operations.coordination.snowflake_ids import LeasedMaker, new_message_id


def worker_of(message_id: int) -> int:
    return message_id >> 12 & 1023


def test_ids_of_a_process_ascend_and_contain_its_worker_number() -> None:
    made = [new_message_id() for _ in range(5000)]
    assert made == sorted(set(made))
    assert len({worker_of(message_id) for message_id in made}) == 1


def test_two_generators_have_different_worker_numbers() -> None:
    one, other = LeasedMaker(lease_seconds=20), LeasedMaker(lease_seconds=20)
    first, second = one.make(), other.make()
    assert worker_of(first) == one.worker
    assert worker_of(second) == other.worker
    assert one.worker != other.worker


def test_a_lease_is_renewed_when_half_of_it_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = LeasedMaker(lease_seconds=600)
    maker.make()
    worker, until = maker.worker, WorkerLease.objects.get(worker=maker.worker).lease_until
    later = time.monotonic() + 301
    monkeypatch.setattr(time, "monotonic", lambda: later)
    maker.make()
    assert maker.worker == worker
    assert WorkerLease.objects.get(worker=worker).lease_until > until


def test_a_lapsed_lease_is_not_renewed_and_its_number_stays_reserved() -> None:
    maker = LeasedMaker(lease_seconds=0.3)
    maker.make()
    worker = maker.worker
    time.sleep(0.4)
    maker.make()
    assert maker.worker != worker


def test_a_lease_taken_by_another_process_is_given_up() -> None:
    maker = LeasedMaker(lease_seconds=1)
    first = maker.make()
    WorkerLease.objects.filter(worker=maker.worker).update(token="00000000-0000-0000-0000-000000000000")
    time.sleep(0.6)
    assert worker_of(maker.make()) != worker_of(first)


def _make_in_child(pipe: Connection) -> None:
    connection.close()
    pipe.send(new_message_id())
    connection.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_leases_a_number_of_its_own() -> None:
    mine = new_message_id()
    connection.close()
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_make_in_child, args=(there,))
    child.start()
    assert here.poll(30), "the child hangs"
    theirs = here.recv()
    child.join(30)
    assert worker_of(theirs) != worker_of(mine)
