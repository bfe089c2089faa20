"""A silent beat and a node that is down are reported, and resolved when they are back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.monitoring.checks import (
    BEAT_SILENT,
    NODE_DOWN,
    look_at_beat,
    look_at_nodes,
    say_beat_silence,
)
from chatstore.store import cassandra
from chatstore.store.heartbeats import BEAT, note_life, seconds_since
from chatstore.store.redis import redis_client


@pytest.fixture(autouse=True)
def _leave_nothing() -> Iterator[None]:
    yield
    Finding.objects.filter(kind__in=(BEAT_SILENT, NODE_DOWN)).delete()
    redis_client().delete("seen:beat")


def open_ones(kind: str) -> list[Finding]:
    return list(Finding.objects.filter(kind=kind, closed_at=None))


def be_silent_for(seconds: float) -> None:
    """Set the age of beat's last heartbeat."""
    client = redis_client()
    client.set("seen:beat", client.time()[0] - seconds)


def test_beat_that_says_it_lives_is_believed_for_a_minute() -> None:
    note_life(BEAT)
    since = seconds_since(BEAT)
    assert since is not None
    assert since < 5
    look_at_beat(postgres_now())
    assert open_ones(BEAT_SILENT) == []
    be_silent_for(45)
    assert say_beat_silence() == ""


def test_silent_beat_is_told_once_and_over_when_it_is_back() -> None:
    be_silent_for(200)
    look_at_beat(postgres_now())
    look_at_beat(postgres_now())
    (found,) = open_ones(BEAT_SILENT)
    assert found.words.startswith("Beat has sent no heartbeat for 3 minutes")
    note_life(BEAT)
    look_at_beat(postgres_now())
    assert open_ones(BEAT_SILENT) == []


def test_beat_that_nobody_ever_heard_of_is_silent() -> None:
    redis_client().delete("seen:beat")
    assert say_beat_silence().startswith("Beat has never sent a heartbeat")


def test_without_any_node_every_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[tuple[str, bool, str]]:
        raise StoreUnavailable("Cassandra does not answer.")

    monkeypatch.setattr(cassandra, "hosts", fail)
    look_at_nodes(postgres_now())
    assert len(open_ones(NODE_DOWN)) == 2
