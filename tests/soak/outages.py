"""Takes servers of the test stack away and brings them back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from chatstore.local import cassandra, postgres, valkey
from chatstore.local.layout import Stack, read_stack
from chatstore.local.problems import Problem
from chatstore.local.processes import end_processes, find_process, start_process, wait_until_dead
from chatstore.local.servers import END_SECONDS, list_servers, stop_node, wait_until_ready

SECOND_NODE = 1

START_TRIES = 30


@dataclass(frozen=True, slots=True)
class Outage:
    """Something that happens to a server when so many workers were killed."""

    after_kills: int
    says: str
    happen: Callable[[], None]


def stop_second_node(*, kill: bool) -> None:
    stop_node(_stack(), SECOND_NODE, kill=kill)


def start_second_node() -> None:
    _start(cassandra.NAMES[SECOND_NODE])


def is_second_node_away() -> bool:
    return find_process(_stack(), cassandra.NAMES[SECOND_NODE]) is None


def restart_postgres(*, kill: bool) -> None:
    """A fast shutdown, which cuts everybody off, or a crash, which it recovers from."""
    process = find_process(_stack(), postgres.NAME)
    if process is not None and not kill:
        process.send_signal(signal.SIGINT)
        wait_until_dead(process, seconds=END_SECONDS)
    _restart(postgres.NAME)


def restart_valkey(*, kill: bool) -> None:
    """Ended in order, or killed: its last second may be lost."""
    if not kill:
        end_processes(_stack(), [valkey.NAME], seconds=END_SECONDS)
    _restart(valkey.NAME)


def _restart(name: str) -> None:
    end_processes(_stack(), [name], seconds=0)
    _start(name)


def _start(name: str) -> None:
    """Tried again while its port is taken: somebody's connection may have been given that very one."""
    stack = _stack()
    server = next(server for server in list_servers(stack) if server.name == name)
    for tries_left in range(START_TRIES, -1, -1):
        try:
            if find_process(stack, name) is None:
                start_process(stack, server.prepare())
            wait_until_ready(stack, server)
        except Problem:
            if not tries_left:
                raise
            time.sleep(1)
        else:
            return


def _stack() -> Stack:
    return read_stack(os.environ)
