"""A node that is down is reported once; the finding closes by itself when the node is back (the last test here)."""

from __future__ import annotations

import pytest

from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.monitoring.checks import NODE_DOWN, check_nodes
from chatstore.store import cassandra
from tests.outage.conftest import DOWN

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.usefixtures("outage")]


def list_open() -> list[Finding]:
    return list(Finding.objects.filter(kind=NODE_DOWN, closed_at=None))


def test_a_node_that_is_down_is_named_once() -> None:
    check_nodes(postgres_now())
    check_nodes(postgres_now())
    (found,) = list_open()
    assert found.subject == DOWN
    (datacenter,) = {datacenter for _, _, datacenter in cassandra.hosts()}
    assert found.summary == f"Node {DOWN} ({datacenter}) is down: 1 of 2 is up."
