"""Workers are enqueued once per purge, and again after a worker has started or after a minute without one."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation import tasks
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import confirm, everything, make_channel, old_ids, preview, write


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of purges for which `run_purge` or `scan_purge` was enqueued."""
    enqueued: list[int] = []

    def enqueue(purge_id: int) -> object:
        enqueued.append(purge_id)
        return object()

    monkeypatch.setattr(tasks.run_purge, "delay", enqueue)
    monkeypatch.setattr(tasks.scan_purge, "delay", enqueue)
    return enqueued


@pytest.fixture
def queued(mona: User, only_own_purges_wait: None) -> Purge:
    channel = make_channel()
    write(channel, old_ids(120))
    return confirm(mona, preview(mona, everything(channel)))


def test_a_queued_purge_is_enqueued_once_while_every_worker_is_busy(
    queued: Purge, enqueued: list[int], settings: Settings
) -> None:
    # The polls, which find the purges of other tests too, may take longer on a busy machine.
    settings.WAKEUP_EXPIRES_SECONDS = 10**6
    for _ in range(48):
        tasks.poll_due_purges()
    assert enqueued.count(queued.id) == 1


def test_a_scan_is_enqueued_once(mona: User, enqueued: list[int]) -> None:
    purge = draft_purge(moderator=mona, selection=everything(make_channel()))
    tasks.enqueue_scan(purge.id)
    tasks.poll_due_purges()
    assert enqueued.count(purge.id) == 1


@pytest.mark.parametrize("lapse", [ClockTimestamp, lambda: None], ids=["expired", "started"])
def test_a_started_purge_can_be_enqueued_again(queued: Purge, enqueued: list[int], lapse: Callable[[], object]) -> None:
    tasks.poll_due_purges()
    Purge.objects.filter(pk=queued.pk).update(wakeup_expires_at=lapse())
    tasks.poll_due_purges()
    assert enqueued.count(queued.id) == 2


def test_a_starting_worker_clears_the_enqueued_mark(queued: Purge, enqueued: list[int]) -> None:
    tasks.enqueue_workers(queued.id)
    tasks.run_purge(queued.id)
    queued.refresh_from_db()
    assert queued.wakeup_expires_at is None


def test_an_unavailable_broker_does_not_prevent_a_later_enqueue(
    queued: Purge, enqueued: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(tasks.run_purge, "delay", lambda purge_id: None)
        tasks.enqueue_workers(queued.id)
    tasks.enqueue_workers(queued.id)
    assert enqueued == [queued.id]
