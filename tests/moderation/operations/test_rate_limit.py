"""The rate limit of a purge applies across turns, however short they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from chatstore.domain.errors import StoreUnavailable
from chatstore.models.users import User
from chatstore.operations.repair_status.repair_clock import RepairIsLate
from moderation.domain.states import PurgeState
from moderation.models import Step
from moderation.operations.purging import worker
from moderation.operations.purging.quarantine import quarantine_steps
from moderation.store.pace import Pace
from tests.moderation.scattered import make_scattered


@pytest.fixture(autouse=True)
def _fresh_pace() -> Iterator[None]:
    worker.pace_of_process.cache_clear()
    yield
    worker.pace_of_process.cache_clear()


def test_turns_of_a_process_share_one_burst_and_one_rate(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    paces: list[Pace] = []

    def quarantine(steps: Sequence[Step], *, pace: Pace, max_bytes: int) -> worker.Group:
        paces.append(pace)
        return quarantine_steps(steps, pace=pace, max_bytes=max_bytes)

    monkeypatch.setattr(worker, "quarantine_steps", quarantine)
    for scattered in (make_scattered(mona), make_scattered(mona)):
        assert worker.run_purge(scattered.purge.pk).state == PurgeState.DONE
    assert len(paces) > 1
    assert set(paces) == {paces[0]}


@pytest.mark.parametrize(
    ("error", "share"),
    [(StoreUnavailable("a replica is down"), 0.5), (RepairIsLate("the repair is late"), 1)],
    ids=lambda value: type(value).__name__,
)
def test_only_an_overloaded_store_lowers_the_rate_of_the_next_turn(
    mona: User, monkeypatch: pytest.MonkeyPatch, error: Exception, share: float
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    rate = worker.pace_of_process().rate
    monkeypatch.setattr(worker, "quarantine_steps", fail)
    waiting = worker.run_purge(make_scattered(mona).purge.pk, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.WAITING
    assert worker.PurgeWorker(waiting.pk).pace.rate == rate * share
