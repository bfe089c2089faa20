"""A node is reported as up or down only where that is known; for another datacenter it mostly is not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from chatstore.domain.errors import NodeUnreachable
from chatstore.models import Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.monitoring.checks import NODE_DOWN, check_nodes
from chatstore.store import cassandra, nodes

NEAR, FAR = "127.0.0.1", "127.0.0.2"


@pytest.mark.parametrize(
    ("seen", "gossip", "is_up"),
    [
        (True, "normal", True),
        (True, "shutdown", True),
        (False, "normal", False),
        (None, "shutdown", False),
        (None, "normal", None),
        (None, None, None),
    ],
)
def test_the_driver_decides_and_gossip_only_adds_stopped_nodes(
    seen: bool | None, gossip: str | None, is_up: bool | None
) -> None:
    assert nodes.resolve_state(seen, gossip=gossip) is is_up


@pytest.fixture
def far_host() -> Iterator[Any]:
    """Present the second node to the driver as one of another datacenter with unknown state."""
    metadata = cassandra._process.connect().cluster.metadata
    (host,) = (host for host in metadata.all_hosts() if str(host.address) == FAR)
    home = host.datacenter, host.rack
    host.set_location_info("far", host.rack)
    host.is_up = None
    try:
        yield host
    finally:
        host.set_location_info(*home)
        # The next test opens a new session.
        cassandra.close()


@pytest.mark.usefixtures("far_host")
def test_a_node_of_another_datacenter_is_neither_queried_nor_reported_down(
    otto: User, sign_in: Callable[[User], Client]
) -> None:
    assert {node.address: (node.is_up, node.is_remote, node.error) for node in nodes.read_nodes()} == {
        NEAR: (True, False, ""),
        FAR: (None, True, ""),
    }
    answers = nodes.query_nodes("SELECT release_version FROM system.local")
    assert isinstance(answers[NEAR], list)
    assert str(answers[FAR]) == f"Node {FAR} is in datacenter far. This server does not connect to it."
    assert isinstance(answers[FAR], NodeUnreachable)
    assert nodes.list_down() == []
    page = sign_in(otto).get("/health/").content.decode()
    assert "1 of 2 nodes is up." in page
    assert "The status of 1 node is unknown." in page
    check_nodes(postgres_now())
    assert not Finding.objects.filter(kind=NODE_DOWN, subject=FAR, closed_at=None).exists()
