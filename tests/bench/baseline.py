"""The baseline of the bench: bare prepared statements on a bare driver session.

Batches of 100 rows of one partition, 32 in flight; no quarantine, no verification, no ledger.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.query import BatchStatement, BatchType, tuple_factory
from django.conf import settings

BATCH = 100
WINDOW = 32
SCANS = 16

INSERT = (
    "INSERT INTO messages (channel_id, bucket, message_id, author_id, type, content) "
    "VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
)
DELETE_ROW = "DELETE FROM messages WHERE channel_id = ? AND bucket = ? AND message_id = ?"
SCAN = "SELECT message_id, author_id FROM messages WHERE channel_id = ? AND bucket = ?"


@cache
def bare_session() -> Session:
    """Return a driver session with the same consistency and socket options as Chatstore's own."""
    config = settings.CASSANDRA
    cluster = Cluster(
        config["contact_points"],
        port=config["port"],
        protocol_version=5,
        auth_provider=PlainTextAuthProvider(config["user"], config["password"]) if config["user"] else None,
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        execution_profiles={
            EXEC_PROFILE_DEFAULT: ExecutionProfile(
                consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                row_factory=tuple_factory,
                load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(config["datacenter"])),
                request_timeout=30,
            )
        },
    )
    return cluster.connect(config["keyspace"])


@cache
def prepared(cql: str) -> Any:
    """Return the statement, prepared once."""
    return bare_session().prepare(cql)


def run_batches(cql: str, rows: Iterable[Sequence[Any]]) -> None:
    """Send rows in batches. Consecutive rows must mostly share a partition (columns 0 and 1)."""
    remaining = iter(rows)
    run_groups(cql, iter(lambda: list(islice(remaining, BATCH)), []))


def run_groups(cql: str, groups: Iterable[Sequence[Sequence[Any]]]) -> None:
    """Send each group of rows as a batch."""
    session, statement, flying = bare_session(), prepared(cql), deque[Any]()
    for group in groups:
        batch = BatchStatement(BatchType.UNLOGGED)
        for row in group:
            batch.add(statement, row)
        flying.append(session.execute_async(batch))
        if len(flying) >= WINDOW:
            flying.popleft().result()
    while flying:
        flying.popleft().result()


def scan_buckets(keys: Iterable[tuple[int, int]]) -> int:
    """Read every (message id, author id) of small buckets, `SCANS` in flight, and return their number."""
    session, statement, flying = bare_session(), prepared(SCAN), deque[Any]()
    rows = 0
    for key in keys:
        flying.append(session.execute_async(statement.bind(key)))
        if len(flying) >= SCANS:
            rows += sum(1 for _ in flying.popleft().result())
    while flying:
        rows += sum(1 for _ in flying.popleft().result())
    return rows


def scan_bucket(channel_id: int, bucket: int) -> int:
    """Read every (message id, author id) of a bucket and return their number."""
    bound = prepared(SCAN).bind((channel_id, bucket))
    bound.fetch_size = 5_000
    return sum(1 for _ in bare_session().execute(bound))
