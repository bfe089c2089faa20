"""Fixtures shared by the moderation tests."""

from collections.abc import Iterator

import pytest

from chatstore.models import Channel
from moderation.models import Purge
from moderation.operations.purging import completion, worker
from tests.moderation.channels import make_channel


@pytest.fixture
def channel() -> Channel:
    """An empty channel, unique to the test."""
    return make_channel()


@pytest.fixture(autouse=True)
def _short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry after a fraction of a second, so that tests of unavailable servers need not wait."""
    monkeypatch.setattr(worker, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(completion, "BLOCKED_RETRY_SECONDS", 0.2)


@pytest.fixture
def only_own_purges_wait() -> Iterator[None]:
    """Let no purge of another test wait for its turn: a task gives it to the one that comes next, not to its own."""
    Purge.objects.update(wakeup_expires_at=None)
    yield
    Purge.objects.update(wakeup_expires_at=None)
