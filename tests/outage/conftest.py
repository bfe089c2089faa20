"""One outage shared by all tests that need a node to be down: a kill and a restart take half a minute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.domain.runs import ENDED
from chatstore.local.layout import read_stack
from chatstore.models import JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway import messages
from chatstore.operations.monitoring.checks import check_nodes
from chatstore.store import cassandra, repairs
from devstack.servers import start_node, stop_node
from tests.chatstore.channels import VICTOR, fresh_id
from tests.waiting import wait_until, wait_until_nodes_are_up

SECOND_NODE = 1
DOWN = "127.0.0.2"


@dataclass(slots=True)
class Outage:
    """An outage of the second node. before: a message posted before it."""

    before: Message
    is_over: bool = False

    def end(self) -> None:
        """Start the node again, and wait until repairs, each node and this process's session work."""
        if not self.is_over:
            start_node(read_stack(os.environ), SECOND_NODE)
            wait_until(is_repair_possible)
            wait_until_nodes_are_up()
            self.is_over = True


def is_repair_possible() -> bool:
    try:
        repairs.refuse_overlap(["messages"])
    except StoreUnavailable:
        return False
    return True


@pytest.fixture(scope="package")
def outage(_open_databases: None) -> Iterator[Outage]:
    """Stop the second node for all tests of the folder; the last of them may end the outage."""
    JobRun.objects.filter(job="repair", subject="").exclude(state__in=ENDED).delete()
    # The session has connected to both nodes, like that of every worker.
    assert len(cassandra.hosts()) == 2
    running = Outage(messages.post_message(fresh_id(), author_id=VICTOR, content="before"))
    stop_node(read_stack(os.environ), SECOND_NODE, kill=True)
    try:
        wait_until(lambda: {host: up for host, up, _ in cassandra.hosts()}[DOWN] is False)
        yield running
    finally:
        running.end()
        check_nodes(postgres_now())
