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
    check_beat,
    check_nodes,
    describe_beat_silence,
)
from chatstore.store import cassandra
from chatstore.store.heartbeats import BEAT, record_heartbeat, seconds_since_heartbeat
from chatstore.store.redis import redis_client


@pytest.fixture(autouse=True)
def _clean_up() -> Iterator[None]:
    yield
    Finding.objects.filter(kind__in=(BEAT_SILENT, NODE_DOWN)).delete()
    redis_client().delete("seen:beat")


def list_open(kind: str) -> list[Finding]:
    return list(Finding.objects.filter(kind=kind, closed_at=None))


def set_heartbeat_age(seconds: float) -> None:
    """Set the age of beat's last heartbeat."""
    client = redis_client()
    client.set("seen:beat", client.time()[0] - seconds)


def test_a_heartbeat_counts_for_a_minute() -> None:
    record_heartbeat(BEAT)
    since = seconds_since_heartbeat(BEAT)
    assert since is not None
    assert since < 5
    check_beat(postgres_now())
    assert list_open(BEAT_SILENT) == []
    set_heartbeat_age(45)
    assert describe_beat_silence() == ""


def test_a_silent_beat_is_reported_once_and_closed_when_it_is_back() -> None:
    set_heartbeat_age(200)
    check_beat(postgres_now())
    check_beat(postgres_now())
    (found,) = list_open(BEAT_SILENT)
    assert found.summary.startswith("Beat has sent no heartbeat for 3 minutes")
    record_heartbeat(BEAT)
    check_beat(postgres_now())
    assert list_open(BEAT_SILENT) == []


def test_a_beat_without_any_heartbeat_is_silent() -> None:
    redis_client().delete("seen:beat")
    assert describe_beat_silence().startswith("Beat has never sent a heartbeat")


def test_without_any_node_every_node_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[tuple[str, bool, str]]:
        raise StoreUnavailable("Cassandra does not answer.")

    monkeypatch.setattr(cassandra, "hosts", fail)
    check_nodes(postgres_now())
    assert len(list_open(NODE_DOWN)) == 2
