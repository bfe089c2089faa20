"""A stopped beat and a node that is down are reported, and resolved when they are back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.monitoring.checks import (
    HEARTBEAT_MISSING,
    NODE_DOWN,
    check_beat,
    check_nodes,
    describe_missing_heartbeat,
)
from chatstore.store import cassandra
from chatstore.store.heartbeats import BEAT, record_heartbeat, seconds_since_heartbeat
from chatstore.store.redis import redis_client


@pytest.fixture(autouse=True)
def _clean_up() -> Iterator[None]:
    yield
    Finding.objects.filter(kind__in=(HEARTBEAT_MISSING, NODE_DOWN)).delete()
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
    assert list_open(HEARTBEAT_MISSING) == []
    set_heartbeat_age(45)
    assert describe_missing_heartbeat() == ""


def test_a_missing_heartbeat_is_reported_once_and_resolved_when_it_is_back() -> None:
    set_heartbeat_age(200)
    check_beat(postgres_now())
    check_beat(postgres_now())
    (found,) = list_open(HEARTBEAT_MISSING)
    assert found.summary.startswith("The scheduler (Celery beat) has sent no heartbeat for 3 min")
    record_heartbeat(BEAT)
    check_beat(postgres_now())
    assert list_open(HEARTBEAT_MISSING) == []


def test_a_beat_that_never_sent_a_heartbeat_is_reported() -> None:
    redis_client().delete("seen:beat")
    assert describe_missing_heartbeat().startswith("The scheduler (Celery beat) has never sent")


def test_without_any_node_every_node_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[tuple[str, bool, str]]:
        raise StoreUnavailable("Cassandra does not answer.")

    monkeypatch.setattr(cassandra, "hosts", fail)
    check_nodes(postgres_now())
    assert len(list_open(NODE_DOWN)) == 2
