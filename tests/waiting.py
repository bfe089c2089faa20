"""Waiting for what other processes do, and for nodes that were started again."""

from __future__ import annotations

import time
from collections.abc import Callable

from chatstore.store import cassandra, nodes

LIMIT_SECONDS = 300.0
"""By then something is broken: at a load of 40 what takes two seconds takes two minutes."""


def wait_until(happens: Callable[[], bool], *, seconds: float = LIMIT_SECONDS) -> None:
    """Looks 50 times a second; fails when it has not happened by then."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, f"nothing of it happened in {seconds} s"
        time.sleep(0.02)


def wait_until_nodes_are_up() -> None:
    """Until this process's session knows all of them to be up: seconds after they answer others."""
    wait_until(lambda: all(is_up for _, is_up, _ in cassandra.hosts()))


def wait_until_nothing_is_merged() -> None:
    """Until no node compacts what earlier tests wrote: before what a test measures by the clock."""
    wait_until(lambda: not any(node.compactions_waiting or node.compactions_running for node in nodes.read_nodes()))
