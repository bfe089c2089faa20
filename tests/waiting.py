"""Waits for other processes and for restarted nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from chatstore.domain.errors import StoreUnavailable
from chatstore.store import cassandra, nodes

LIMIT_SECONDS = 300.0
"""Something is broken by then: at a load of 40, two seconds become two minutes."""


def wait_until(condition: Callable[[], bool], *, seconds: float = LIMIT_SECONDS) -> None:
    """Poll the condition 50 times a second; fail if it is not true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition was not true within {seconds} s"
        time.sleep(0.02)


def wait_until_nodes_are_up() -> None:
    """Wait until this process's session has all nodes as up, which takes seconds longer than for others, and until each
    node can read from all of them.

    A restarted node reads from its peer at once, while the peer may have it as down for seconds longer.
    """
    wait_until(lambda: all(is_up for _, is_up, _ in cassandra.hosts()))
    wait_until(lambda: all(can_read_from_every_replica(address) for address, _, _ in cassandra.hosts()))


def can_read_from_every_replica(coordinator: str) -> bool:
    """Return whether the node at this address, as a coordinator, gets an answer from all replicas of a partition."""
    cql = "SELECT message_id FROM pins WHERE channel_id = 1"
    try:
        cassandra.submit_to(coordinator, cql, consistency=cassandra.ALL).rows()
    except StoreUnavailable:
        return False
    return True


def wait_until_nothing_is_merged() -> None:
    """Wait until no node compacts data of earlier tests, before a test that measures time."""
    wait_until(lambda: not any(node.compactions_waiting or node.compactions_running for node in nodes.read_nodes()))


IDLE_PERCENT = 15.0
"""Load of all cores together, below which the servers are idle."""


def wait_until_idle(*, seconds: float = 60.0) -> None:
    """Wait until the machine does nothing else, before a test of what a user feels; at most so long, then go on."""
    wait_until_nothing_is_merged()
    end = time.monotonic() + seconds
    while psutil.cpu_percent(interval=1.0) > IDLE_PERCENT and time.monotonic() < end:
        pass
