"""Workers are enqueued once per purge, and again after a worker has started or after a minute without one."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from chatstore.models.functions import ClockTimestamp
from moderation import tasks
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.rooms import confirm, everything, make_channel, old_ids, preview, write


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of purges for which `run_purge` or `scan_purge` was enqueued."""
    called: list[int] = []

    def enqueue(purge_id: int) -> object:
        called.append(purge_id)
        return object()

    monkeypatch.setattr(tasks.run_purge, "delay", enqueue)
    monkeypatch.setattr(tasks.scan_purge, "delay", enqueue)
    return called


@pytest.fixture
def queued(mona: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(120))
    return confirm(mona, preview(mona, everything(channel)))


def test_a_queued_purge_is_enqueued_once_while_every_worker_is_busy(queued: Purge, called: list[int]) -> None:
    for _ in range(48):
        tasks.look_for_due_purges()
    assert called.count(queued.id) == 1


def test_a_scan_is_enqueued_once(mona: User, called: list[int]) -> None:
    purge = draft_purge(moderator=mona, selection=everything(make_channel()))
    tasks.ring_scan(purge.id)
    tasks.look_for_due_purges()
    assert called.count(purge.id) == 1


@pytest.mark.parametrize("lapse", [ClockTimestamp, lambda: None], ids=["expired", "started"])
def test_it_is_enqueued_again(queued: Purge, called: list[int], lapse: Callable[[], object]) -> None:
    tasks.look_for_due_purges()
    Purge.objects.filter(pk=queued.pk).update(rung_until=lapse())
    tasks.look_for_due_purges()
    assert called.count(queued.id) == 2


def test_a_worker_that_comes_says_so(queued: Purge, called: list[int]) -> None:
    tasks.look_for_due_purges()
    tasks.run_purge(queued.id)
    queued.refresh_from_db()
    assert queued.rung_until is None


def test_a_broker_that_is_away_keeps_nobody_from_calling_again(
    queued: Purge, called: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(tasks.run_purge, "delay", lambda purge_id: None)
        tasks.ring(queued.id)
    tasks.ring(queued.id)
    assert called == [queued.id]
