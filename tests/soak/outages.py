"""Stops and restarts of servers of the test stack."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

from chatstore.local.layout import Stack, read_stack
from devstack import cassandra, postgres, valkey
from devstack.processes import end_processes, find_process
from devstack.servers import END_SECONDS, list_servers, start_again, stop_node
from tests.processes import wait_until_dead

SECOND_NODE = 1


@dataclass(frozen=True, slots=True)
class Outage:
    """A planned server event, after a number of kills."""

    after_kills: int
    description: str
    run: Callable[[], None]


def stop_second_node(*, kill: bool) -> None:
    stop_node(_stack(), SECOND_NODE, kill=kill)


def start_second_node() -> None:
    _start(cassandra.NAMES[SECOND_NODE])


def is_second_node_away() -> bool:
    return find_process(_stack(), cassandra.NAMES[SECOND_NODE]) is None


def restart_postgres(*, kill: bool) -> None:
    """Restart Postgres, by a fast shutdown, which closes all connections, or by a kill with crash recovery."""
    process = find_process(_stack(), postgres.NAME)
    if process is not None and not kill:
        process.send_signal(signal.SIGINT)
        wait_until_dead(process, seconds=END_SECONDS)
    _restart(postgres.NAME)


def restart_valkey(*, kill: bool) -> None:
    """Restart Valkey, gracefully or by a kill, which may lose its last second."""
    if not kill:
        end_processes(_stack(), [valkey.NAME], seconds=END_SECONDS)
    _restart(valkey.NAME)


def _restart(name: str) -> None:
    end_processes(_stack(), [name], seconds=0)
    _start(name)


def _start(name: str) -> None:
    stack = _stack()
    start_again(stack, next(server for server in list_servers(stack) if server.name == name))


def _stack() -> Stack:
    return read_stack(os.environ)
