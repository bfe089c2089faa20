"""Waits for other processes and for restarted nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

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
    """Wait until this process's session has all nodes as up, which takes seconds longer than for others."""
    wait_until(lambda: all(is_up for _, is_up, _ in cassandra.hosts()))


def wait_until_nothing_is_merged() -> None:
    """Wait until no node compacts data of earlier tests, before a test that measures time."""
    wait_until(lambda: not any(node.compactions_waiting or node.compactions_running for node in nodes.read_nodes()))
