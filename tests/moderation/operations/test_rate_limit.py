"""The rate limit of a purge applies across turns, however short they are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Step
from moderation.operations.purging import worker
from moderation.operations.purging.quarantine import quarantine_steps
from moderation.store.pace import Pace
from tests.moderation.scattered import make_scattered


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
