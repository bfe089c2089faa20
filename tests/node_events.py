"""Events that Cassandra's nodes log about each other and about pauses of their own."""

import re

from chatstore.local.layout import Stack
from devstack import cassandra
from devstack.processes import path_of_log

MAX_EVENTS = 15
"""Per node, the newest."""

_EVENT = re.compile(r" (?:Gossiper|FailureDetector|GCInspector|StorageService|CassandraDaemon): ")


def read_node_events(stack: Stack) -> str:
    """Return the newest events of each node of the stack, one per line, below the node's name."""
    return "\n".join(line for name in cassandra.NAMES for line in (name, *_read_events(stack, name)))


def _read_events(stack: Stack, name: str) -> list[str]:
    try:
        lines = path_of_log(stack, name).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ["no log"]
    return [line[:200] for line in lines if _EVENT.search(line)][-MAX_EVENTS:]
