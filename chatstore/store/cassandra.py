"""The only module that uses the Cassandra driver.

One session per process, opened on first use and again after a fork; prepared statements, tuple rows, LOCAL_QUORUM
unless a call overrides it. The driver's errors are raised as `StoreUnavailable` (retry later) or `TooManyTombstones`
(read a smaller interval); an error about an invalid statement is a bug and is raised unchanged.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cassandra as driver
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    ResponseFuture,
    Session,
)
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    TokenAwarePolicy,
)
from cassandra.query import (
    UNSET_VALUE,
    BatchStatement,
    BatchType,
    BoundStatement,
    PreparedStatement,
    SimpleStatement,
    tuple_factory,
)
from django.conf import settings

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store.driver_errors import translate_error

LOCAL_QUORUM: int = driver.ConsistencyLevel.LOCAL_QUORUM
LOCAL_ONE: int = driver.ConsistencyLevel.LOCAL_ONE
ALL: int = driver.ConsistencyLevel.ALL
UNSET: Any = UNSET_VALUE

Row = tuple[Any, ...]
Params = Sequence[Any]

FETCH_SIZE = 5_000
"""Rows per page of a read; 20,000 is 25 % faster for rows of two numbers."""

WINDOW = 32
"""Statements in flight: more was slower on every machine measured."""

REQUEST_TIMEOUT_SECONDS = 12.0
"""Longer than the server's own limits (5 s per read, 2 s per write), so that the server's error arrives first."""

NODE_TIMEOUT_SECONDS = 3.0
"""For a node's virtual tables, which are served from memory: a slower node is in trouble."""

OUTAGE_SECONDS = 60.0
"""For how long a failed attempt to connect counts as an outage: a process that reads nothing does not try again."""

SLOW_SECONDS = 1.0
"""Statements that a caller waits for longer than this are logged."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Connection:
    cluster: Cluster
    session: Session
    prepared: dict[str, PreparedStatement]


class _Process:
    """This process's connection. A session opened before a fork hangs in the child."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.RLock()
        self.connection: _Connection | None = None
        self.failed_at: float | None = None

    def connect(self) -> _Connection:
        connection = self.connection
        if connection is None:
            with self.lock:
                if self.connection is None:
                    self.connection = self._open()
                connection = self.connection
        return connection

    def _open(self) -> _Connection:
        try:
            connection = _open_connection()
        except StoreUnavailable:
            self.failed_at = time.monotonic()
            raise
        self.failed_at = None
        return connection


_process = _Process()
os.register_at_fork(after_in_child=_process.forget)


def _open_connection() -> _Connection:
    config = settings.CASSANDRA
    load_balancing = TokenAwarePolicy(DCAwareRoundRobinPolicy(local_dc=config["datacenter"]))
    profile = ExecutionProfile(
        load_balancing_policy=load_balancing,
        consistency_level=LOCAL_QUORUM,
        row_factory=tuple_factory,
        request_timeout=REQUEST_TIMEOUT_SECONDS,
    )
    user = config["user"]
    cluster = Cluster(
        contact_points=config["contact_points"],
        port=config["port"],
        protocol_version=driver.ProtocolVersion.V5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        auth_provider=PlainTextAuthProvider(user, config["password"]) if user else None,
        ssl_context=config["tls"],
        # Without this a request over 4 KiB stalls for 44 ms.
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        # Use a recovered node again within seconds.
        reconnection_policy=ExponentialReconnectionPolicy(0.5, 5.0),
    )
    try:
        return _Connection(cluster, cluster.connect(config["keyspace"]), {})
    except Exception as error:
        cluster.shutdown()
        raise translate_error(error) from error


def close() -> None:
    """Close this process's session; the next call opens a new one."""
    with _process.lock:
        connection, _process.connection = _process.connection, None
        _process.failed_at = None
    if connection is not None:
        connection.cluster.shutdown()


def hosts() -> list[tuple[str, bool | None, str]]:
    """Return the nodes known to the driver: address, whether it is up (None if the driver never learned it),
    datacenter.
    """
    return _list_hosts(_process.connect())


def connected_hosts() -> list[tuple[str, bool | None, str]] | None:
    """Return the nodes as `hosts` does, but never connect: None if this process has no session yet."""
    connection = _process.connection
    return None if connection is None else _list_hosts(connection)


def has_failed_to_connect() -> bool:
    """Return whether this process has no session because its last attempt to connect failed just now."""
    failed_at = _process.failed_at
    return _process.connection is None and failed_at is not None and time.monotonic() - failed_at < OUTAGE_SECONDS


def _list_hosts(connection: _Connection) -> list[tuple[str, bool | None, str]]:
    found = [(str(h.address), h.is_up, str(h.datacenter)) for h in connection.cluster.metadata.all_hosts()]
    return sorted(found, key=lambda host: host[0])


def ring() -> list[tuple[int, str]]:
    """Return (token, address of its primary node), ascending, for the datacenters that replicate our keyspace."""
    token_map = _process.connect().cluster.metadata.token_map
    if token_map is None or not token_map.ring:
        raise StoreUnavailable(_("Cassandra’s token ownership is not known yet."))
    owners = ((token, token_map.token_to_host_owner[token]) for token in token_map.ring)
    return [
        (int(token.value), str(host.address))
        for token, host in owners
        if host.datacenter in settings.CASSANDRA["replication"]
    ]


def replicas_by_range() -> list[tuple[int, str, list[str]]]:
    """Return the ring as `ring` does, with the replicas of the range that ends at each token; where the driver does not
    know them, all nodes.
    """
    owners = ring()
    token_map = _process.connect().cluster.metadata.token_map
    keyspace, all_nodes = settings.CASSANDRA["keyspace"], sorted({node for _token, node in owners})
    found = []
    for token, node in owners:
        replicas = token_map.get_replicas(keyspace, token_map.token_class(token))
        found.append((token, node, [str(host.address) for host in replicas] or all_nodes))
    return found


def locate_partition(cql: str, params: Params) -> tuple[int, list[str]]:
    """Return (token, replica addresses) of the partition that a statement reads, without executing it."""
    metadata = _process.connect().cluster.metadata
    key = prepare(cql).bind(params).routing_key
    if metadata.token_map is None:
        raise StoreUnavailable(_("Cassandra’s token ownership is not known yet."))
    replicas = metadata.get_replicas(settings.CASSANDRA["keyspace"], key)
    token = int(metadata.token_map.token_class.from_key(key).value)
    return token, sorted(str(host.address) for host in replicas)


def prepare(cql: str) -> PreparedStatement:
    """Return the prepared statement; each is prepared once per process."""
    connection = _process.connect()
    statement = connection.prepared.get(cql)
    if statement is None:
        try:
            statement = connection.session.prepare(cql)
        except Exception as error:
            raise translate_error(error) from error
        connection.prepared[cql] = statement
    return statement


# --- One statement -------------------------------------------------------------------


def _bind(cql: str, params: Params, *, consistency: int | None, fetch_size: int) -> BoundStatement:
    bound = BoundStatement(prepare(cql), consistency_level=consistency, fetch_size=fetch_size)
    return bound.bind(params)


class Pending:
    """A statement in flight."""

    __slots__ = ("_cql", "_future", "_traces")

    def __init__(self, future: ResponseFuture, cql: str, traces: list[uuid.UUID] | None = None) -> None:
        self._future = future
        self._cql = cql
        self._traces = traces

    def rows(self) -> list[Row]:
        """Wait for the result, all its pages."""
        # Not since it was sent: of those in flight, most are answered long before their turn.
        began = time.monotonic()
        rows = [row for page in self.pages() for row in page]
        seconds = time.monotonic() - began
        if seconds > SLOW_SECONDS:
            log.warning("waited %.0f ms for %s", seconds * 1000, self._cql)
        return rows

    def pages(self) -> Iterator[list[Row]]:
        """Yield each page as it arrives; the next one is requested before a page is yielded."""
        try:
            rows = self._take_page()
            while self._future.has_more_pages:
                self._future.start_fetching_next_page()
                yield rows
                rows = self._take_page()
        except Exception as error:
            raise translate_error(error) from error
        yield rows

    def _take_page(self) -> list[Row]:
        rows: list[Row] = self._future.result().current_rows or []
        if self._traces is not None:
            # Use the last trace: after a schema change the node answers the first attempt with UNPREPARED,
            # whose trace is empty.
            self._traces.append(self._future.get_query_trace_ids()[-1])
        return rows


def submit(
    cql: str,
    params: Params = (),
    *,
    consistency: int | None = None,
    fetch_size: int = FETCH_SIZE,
    timeout: float | None = None,
    traces: list[uuid.UUID] | None = None,
) -> Pending:
    """Send a statement without waiting.

    `timeout`: seconds, then `DeadlinePassed`. `traces`: if given, the read is traced, and each page's trace id is
    appended before the page is yielded.
    """
    bound = _bind(cql, params, consistency=consistency, fetch_size=fetch_size)
    return _send(bound, cql, timeout=timeout, traces=traces)


def _send(statement: Any, cql: str, *, timeout: float | None = None, traces: list[uuid.UUID] | None = None) -> Pending:
    limit = REQUEST_TIMEOUT_SECONDS if timeout is None else max(timeout, 0.001)
    session = _process.connect().session
    try:
        return Pending(session.execute_async(statement, timeout=limit, trace=traces is not None), cql, traces)
    except Exception as error:
        raise translate_error(error) from error


def submit_to(
    address: str,
    cql: str,
    params: Params = (),
    *,
    consistency: int = LOCAL_ONE,
    timeout: float = NODE_TIMEOUT_SECONDS,
) -> Pending:
    """Send a statement to one node: a query of its local tables (`system_views`, `system`), or one that it coordinates;
    parameters are `%s`.

    Raises `StoreUnavailable`, here or when the rows are requested.
    """
    connection = _process.connect()
    host = next((h for h in connection.cluster.metadata.all_hosts() if str(h.address) == address), None)
    if host is None:
        raise StoreUnavailable(_("The cluster has no node %(node)s.", node=address))
    statement = SimpleStatement(cql, consistency_level=consistency)
    try:
        return Pending(connection.session.execute_async(statement, params or None, host=host, timeout=timeout), cql)
    except Exception as error:
        raise translate_error(error) from error


def execute(
    cql: str,
    params: Params = (),
    *,
    consistency: int | None = None,
    fetch_size: int = FETCH_SIZE,
    timeout: float | None = None,
) -> list[Row]:
    """Execute a statement and return all its rows.

    Raises `StoreUnavailable`, `TooManyTombstones`, or `DeadlinePassed` after `timeout` seconds.
    """
    return submit(cql, params, consistency=consistency, fetch_size=fetch_size, timeout=timeout).rows()


def iterate(
    cql: str,
    params: Params = (),
    *,
    fetch_size: int = FETCH_SIZE,
    consistency: int | None = None,
    traces: list[uuid.UUID] | None = None,
) -> Iterator[list[Row]]:
    """Yield the pages of a read; the next one is requested before a page is yielded. `traces` as in `submit`."""
    yield from submit(cql, params, consistency=consistency, fetch_size=fetch_size, traces=traces).pages()


# --- Many statements -----------------------------------------------------------------


def execute_window(
    jobs: Iterable[tuple[str, Params]],
    *,
    window: int = WINDOW,
    consistency: int | None = None,
) -> Iterator[list[Row]]:
    """Yield the rows of each job, in the order of the jobs, with at most `window` of them in flight.

    The first error is raised once all statements in flight have ended.
    """
    sends = (partial(submit, cql, params, consistency=consistency) for cql, params in jobs)
    yield from _run_window(sends, window)


def iterate_each(
    jobs: Iterable[tuple[str, Params]], *, window: int = WINDOW, fetch_size: int = FETCH_SIZE
) -> Iterator[Iterator[list[Row]]]:
    """Yield the pages of each read, in the order of the jobs, with the first pages of up to `window` reads in flight.

    The pages of a read have to be consumed before the next read is taken.
    """
    sends = (partial(submit, cql, params, fetch_size=fetch_size) for cql, params in jobs)
    in_flight: deque[Pending] = deque()
    try:
        in_flight.extend(send() for send in itertools.islice(sends, window))
        while in_flight:
            pages = in_flight.popleft().pages()
            in_flight.extend(send() for send in itertools.islice(sends, 1))
            yield pages
    finally:
        drain(in_flight)


def _run_window(sends: Iterable[Callable[[], Pending]], window: int) -> Iterator[list[Row]]:
    in_flight: deque[Pending] = deque()
    remaining = iter(sends)
    try:
        for send in itertools.islice(remaining, window):
            in_flight.append(send())
        while in_flight:
            rows = in_flight.popleft().rows()
            for send in itertools.islice(remaining, 1):
                in_flight.append(send())
            yield rows
    finally:
        drain(in_flight)


def drain(in_flight: deque[Pending]) -> None:
    """Wait for statements whose results are no longer needed, after the first error."""
    while in_flight:
        try:
            in_flight.popleft().rows()
        except (StoreUnavailable, TooManyTombstones) as error:
            log.debug("after the first error: %s", error)


def batch(cql: str, rows: Iterable[Params], *, consistency: int | None = None) -> BatchStatement:
    """Return an UNLOGGED batch of a statement; its rows belong to one partition, or to a few small ones."""
    statement = prepare(cql)
    built = BatchStatement(BatchType.UNLOGGED, consistency_level=consistency)
    for row in rows:
        built.add(statement, row)
    return built


def submit_batch(cql: str, rows: Sequence[Params], *, consistency: int | None = None) -> Pending:
    """Send a batch of one partition, or of a few small ones, without waiting; a single row without a batch."""
    if len(rows) == 1:
        return submit(cql, rows[0], consistency=consistency)
    return _send(batch(cql, rows, consistency=consistency), cql)


def execute_batches(
    cql: str,
    groups: Iterable[Sequence[Params]],
    *,
    window: int = WINDOW,
    pace: Callable[[int], None] | None = None,
    consistency: int | None = None,
) -> int:
    """Execute one UNLOGGED batch per group (of one partition, or a few small ones); return the number of rows.

    `pace` is called with each group's size before it is sent, and may wait. Groups are consumed as they are sent. The
    first error is raised once all statements in flight have ended; which groups were applied is then unknown.
    """
    jobs = ((cql, group) for group in groups)
    return execute_batch_jobs(jobs, window=window, pace=pace, consistency=consistency)


def execute_batch_jobs(
    jobs: Iterable[tuple[str, Sequence[Params]]],
    *,
    window: int = WINDOW,
    pace: Callable[[int], None] | None = None,
    consistency: int | None = None,
) -> int:
    """Execute batches as `execute_batches` does, each group with its own statement."""
    done = 0

    def send(cql: str, group: Sequence[Params]) -> Pending:
        nonlocal done
        if pace is not None:
            pace(len(group))
        done += len(group)
        return submit_batch(cql, group, consistency=consistency)

    for _sent in _run_window((partial(send, *job) for job in jobs), window):
        pass
    return done
