"""Start and stop the stores of one stack, all at once."""

import contextlib
import fcntl
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from chatstore.local.layout import CASSANDRA_HOSTS, Stack
from devstack import cassandra, commitlogs, postgres, valkey
from devstack.checks import check_disk, check_memory, measure_free_memory
from devstack.problems import Problem
from devstack.processes import (
    Launch,
    describe_death,
    end_processes,
    find_process,
    is_dead,
    start_process,
    wait_until_ended,
)

# Limits for broken servers, not for slow ones: on two idle cores two fresh nodes answer after 14 s and stop
# after 5 s, and a busy machine may take forty times as long. A server that died is noticed at once.
READY_SECONDS = 600
END_SECONDS = 60
LEAVE_TIMEOUT_SECONDS = 4
# From the moment when a node accepts no more statements until it is killed.
EXIT_SECONDS = 3

MAX_START_ATTEMPTS = 15
START_RETRY_SECONDS = 2.0


@dataclass(frozen=True)
class Server:
    """A store: how to prepare it, and the address on which it listens once it is ready."""

    name: str
    host: str
    port: int
    prepare: Callable[[], Launch]


def list_servers(stack: Stack) -> list[Server]:
    """Return the servers of this stack, without those that the environment sets to external ones."""
    servers = []
    if not is_external("DATABASE_URL"):
        servers.append(
            Server(
                postgres.NAME,
                "127.0.0.1",
                stack.ports.postgres,
                lambda: postgres.prepare_postgres(stack),
            )
        )
    if not is_external("REDIS_URL"):
        servers.append(Server(valkey.NAME, "127.0.0.1", stack.ports.valkey, lambda: valkey.prepare_valkey(stack)))
    if not is_external("CASSANDRA_CONTACT_POINTS"):
        servers += [_describe_node(stack, index) for index in range(len(cassandra.NAMES))]
    return servers


def is_external(setting: str) -> bool:
    """Return whether an external server is set, which is then not started."""
    return bool(os.environ.get(setting, "").strip() or os.environ.get(f"{setting}_FILE"))


def _describe_node(stack: Stack, index: int) -> Server:
    return Server(
        cassandra.NAMES[index],
        CASSANDRA_HOSTS[index],
        stack.ports.cassandra,
        lambda: cassandra.prepare_node(stack, index),
    )


@contextmanager
def lock_stack(stack: Stack) -> Iterator[None]:
    """Allow one starter per stack at a time; the lock is released with its process, however it ends."""
    stack.folder.mkdir(parents=True, exist_ok=True)
    with _path_of_lock(stack).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(f"Another terminal is already running the {stack.name} servers.") from None
        yield


def _path_of_lock(stack: Stack) -> Path:
    return stack.folder / "lock"


def set_keep_running(stack: Stack, *, kept: bool) -> None:
    """Record whether the servers keep running while no command uses them."""
    mark = stack.folder / "kept"
    if kept:
        mark.touch()
    else:
        mark.unlink(missing_ok=True)


def keeps_running(stack: Stack) -> bool:
    return (stack.folder / "kept").exists()


def start_servers(stack: Stack, *, when_postgres_is_up: Callable[[], object] = dict) -> list[str]:
    """Start the servers that do not run yet and wait until all respond; return the names of those started.

    `when_postgres_is_up` is called as soon as the database accepts queries, while the nodes are still starting. Raises
    Problem, after stopping the servers that it had started itself.
    """
    servers = list_servers(stack)
    missing = [one for one in servers if find_process(stack, one.name) is None]
    nodes = [one for one in missing if one.name in cassandra.NAMES]
    started: list[str] = []

    def start(chosen: list[Server]) -> None:
        # Prepare all before the first one starts, so that a taken port leaves nothing half started.
        for launch in [one.prepare() for one in chosen]:
            start_process(stack, launch)
            started.append(launch.name)

    try:
        with ExitStack() as fetching:
            if nodes:
                check_memory(measure_free_memory())
                check_disk(stack.folder)
            if nodes and not cassandra.has_jars():
                for one in nodes:
                    cassandra.check_node(stack, cassandra.NAMES.index(one.name))
                finish_fetching = fetching.enter_context(cassandra.fetch_jars())
                start([one for one in missing if one not in nodes])
                _bring_up_database(stack, when_postgres_is_up)
                finish_fetching()
                start(nodes)
            else:
                start(missing)
                _bring_up_database(stack, when_postgres_is_up)
        for server in servers:
            wait_until_ready(stack, server)
        if any(server.name in cassandra.NAMES for server in servers):
            cassandra.ensure_roles(stack)
    except BaseException:
        end_processes(stack, started, seconds=END_SECONDS)
        raise
    return started


def _bring_up_database(stack: Stack, when_postgres_is_up: Callable[[], object]) -> None:
    for server in list_servers(stack):
        if server.name not in cassandra.NAMES:
            wait_until_ready(stack, server)
    if not is_external("DATABASE_URL"):
        postgres.prepare_database(stack)
    when_postgres_is_up()


def wait_until_ready(stack: Stack, server: Server) -> None:
    """Wait until the server accepts connections; raise Problem if it dies or takes too long."""
    end = time.monotonic() + READY_SECONDS
    process = find_process(stack, server.name)
    while time.monotonic() < end:
        if process is None or is_dead(process):
            raise describe_death(stack, server.name)
        if answers(server.host, server.port):
            return
        time.sleep(0.1)
    raise Problem(f"{server.name} did not answer within {READY_SECONDS} s.")


def answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def stop_servers(stack: Stack) -> list[str]:
    """Stop every server of the stack; return the names of those that did not react and were killed.

    The first node is stopped once the second one has left the cluster. Still, one may wait ten seconds for the other's
    response to an echo, which never arrives. By then it accepts no statements and can be killed: the next start replays
    its commit log, so that no write is lost.
    """
    nodes = {index: node for index, name in enumerate(cassandra.NAMES) if (node := find_process(stack, name))}
    for index, node in reversed(nodes.items()):
        with contextlib.suppress(psutil.NoSuchProcess):
            node.terminate()
        if index:
            _wait_until_closed(CASSANDRA_HOSTS[index], stack.ports.cassandra_storage, seconds=LEAVE_TIMEOUT_SECONDS)
    killed = end_processes(stack, [postgres.NAME, valkey.NAME], seconds=END_SECONDS)
    for index in nodes:
        if not _wait_until_closed(CASSANDRA_HOSTS[index], stack.ports.cassandra, seconds=END_SECONDS):
            killed.append(cassandra.NAMES[index])
    wait_until_ended(list(nodes.values()), seconds=EXIT_SECONDS)
    end_processes(stack, cassandra.NAMES, seconds=0)
    return killed


def _wait_until_closed(host: str, port: int, *, seconds: float) -> bool:
    """Return whether nothing listens on the port any more; wait at most `seconds` for that."""
    end = time.monotonic() + seconds
    while answers(host, port):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def delete_data(stack: Stack) -> None:
    """Stop the servers and delete all they have stored. The caller has the stack locked.

    Raises Problem for the stack of `make run`, whose data belongs to people, and for servers that `up` started: other
    commands may be using them.
    """
    if not stack.for_tests:
        raise Problem(f"The data of the {stack.name} servers is never deleted by a command.")
    if keeps_running(stack):
        raise Problem(f"The {stack.name} servers may be in use. Stop them: python -m devstack down {stack.name}.")
    stop_servers(stack)
    for path in stack.folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != _path_of_lock(stack):
            path.unlink()
    commitlogs.remove_orphans()


def stop_node(stack: Stack, index: int, *, kill: bool = False) -> None:
    """Stop Cassandra node 0 or 1, with `kill` by SIGKILL: for tests of an outage."""
    end_processes(stack, [cassandra.NAMES[index]], seconds=0 if kill else END_SECONDS)


def start_node(stack: Stack, index: int) -> None:
    """Start Cassandra node 0 or 1 again and wait until it responds."""
    start_again(stack, _describe_node(stack, index))


def start_again(stack: Stack, server: Server) -> None:
    """Start a server that was up before, and wait until it responds.

    While it was down, one of its ports may have been assigned to an outgoing connection: then the start is retried for
    a while.
    """
    for attempts_left in reversed(range(MAX_START_ATTEMPTS)):
        try:
            if find_process(stack, server.name) is None:
                start_process(stack, server.prepare())
            wait_until_ready(stack, server)
        except Problem:
            if not attempts_left or find_process(stack, server.name) is not None:
                raise
            time.sleep(START_RETRY_SECONDS)
        else:
            return
