"""The only module that uses the driver: pages, windows, batches, traces, forks and converted errors."""

import copy
import multiprocessing
import os
import socket
import uuid
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest
from cassandra import InvalidRequest
from django.conf import settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.operations.monitoring.console import describe_cassandra_outage
from chatstore.store import cassandra, messages, tables, traces
from chatstore.store.driver_errors import DeadlinePassed
from tests.chatstore.channels import VICTOR, delete_rows, fresh_id

INSERT = "INSERT INTO pins (channel_id, message_id) VALUES (?, ?)"
SELECT = "SELECT message_id FROM pins WHERE channel_id = ?"
SELECT_ONE = "SELECT message_id FROM pins WHERE channel_id = ? AND message_id = ?"

REACHABLE = settings.CASSANDRA


def write_pins(channel_id: int, count: int) -> None:
    cassandra.execute_batches(INSERT, [[(channel_id, number) for number in range(count)]])


def test_rows_are_tuples_of_all_pages() -> None:
    channel_id = fresh_id()
    write_pins(channel_id, 25)
    rows = cassandra.execute(SELECT, (channel_id,), fetch_size=10)
    assert rows == [(number,) for number in range(24, -1, -1)]


def test_pages_are_yielded_one_by_one() -> None:
    channel_id = fresh_id()
    write_pins(channel_id, 25)
    pages = list(cassandra.iterate(SELECT, (channel_id,), fetch_size=10))
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [row[0] for page in pages for row in page] == list(range(24, -1, -1))


def test_an_empty_read_is_one_empty_page() -> None:
    assert list(cassandra.iterate(SELECT, (fresh_id(),))) == [[]]


@pytest.mark.parametrize("window", [1, 7, 100])
def test_a_window_returns_results_in_order(window: int) -> None:
    channel_id = fresh_id()
    write_pins(channel_id, 40)
    jobs = ((SELECT_ONE, (channel_id, number)) for number in range(50))
    answers = list(cassandra.execute_window(jobs, window=window))
    assert answers == [[(number,)] for number in range(40)] + [[]] * 10


def test_an_invalid_statement_raises_the_driver_error() -> None:
    with pytest.raises(InvalidRequest):
        cassandra.execute("SELECT nothing FROM pins WHERE channel_id = 1")


def test_batches_are_paced_before_they_are_sent_and_counted() -> None:
    channel_id = fresh_id()
    paced: list[int] = []

    def pace(size: int) -> None:
        already = cassandra.execute(SELECT, (channel_id,))
        assert len(already) <= sum(paced)
        paced.append(size)

    groups = ([(channel_id, first + number) for number in range(10)] for first in range(0, 50, 10))
    assert cassandra.execute_batches(INSERT, groups, window=2, pace=pace) == 50
    assert paced == [10] * 5
    assert len(cassandra.execute(SELECT, (channel_id,))) == 50


def test_a_trace_reports_the_rows_scanned_by_every_replica() -> None:
    channel_id = fresh_id()
    ids = range(1000)
    written = [Message(channel_id, one, VICTOR) for one in ids]
    messages.insert_messages(written, stamp_us=1)
    delete_rows(channel_id, ids[100:400])
    cql = "SELECT message_id FROM messages WHERE channel_id = ? AND bucket = 0"
    whole = traces.execute_traced(cql, (channel_id,), consistency=cassandra.ALL)
    assert len(whole.rows) == 700
    assert set(whole.per_replica) == {host for host, _, _ in cassandra.hosts()}
    assert set(whole.per_replica.values()) == {(700, 300)}
    assert (whole.live, whole.tombstones) == (700, 300)
    assert whole.milliseconds > 0
    paged = traces.execute_traced(cql, (channel_id,), fetch_size=100)
    assert (len(paged.rows), paged.tombstones) == (700, 300)


def test_a_trace_belongs_to_the_successful_attempt_after_a_reprepare() -> None:
    channel_id = fresh_id()
    messages.insert_messages([Message(channel_id, one, VICTOR) for one in range(30)], stamp_us=1)
    cql = "SELECT message_id, author_id FROM messages WHERE channel_id = ? AND bucket = 0"
    assert traces.execute_traced(cql, (channel_id,)).live == 30
    seconds = tables.read_table("messages").gc_grace_seconds
    for changed in (seconds + 1, seconds):
        # A schema change makes every node forget the statements prepared for the table.
        tables.set_gc_grace("messages", changed)
        assert [traces.execute_traced(cql, (channel_id,)).live for _ in range(3)] == [30, 30, 30]
    tables.set_gc_grace("messages", seconds + 1)
    tables.set_gc_grace("messages", seconds)
    found: list[uuid.UUID] = []
    pages = list(cassandra.iterate(cql, (channel_id,), fetch_size=20, traces=found))
    assert (len(pages), traces.count_tombstones([found])) == (2, [0])


def test_the_larger_of_two_trace_lines_of_one_replica_counts() -> None:
    seen = traces.parse_trace(
        [
            ("127.0.0.1", "Read 50 live rows and 3 tombstone cells"),
            ("127.0.0.2", "Read 50 live rows and 1500 tombstone cells (see tombstone_warn_threshold)"),
            ("127.0.0.1", "Read 51 live rows and 0 tombstone cells"),
            ("127.0.0.1", "Merging memtable contents"),
        ]
    )
    assert seen == {"127.0.0.1": (51, 3), "127.0.0.2": (50, 1500)}


def test_the_nodes_of_an_open_session_are_known_without_connecting() -> None:
    nodes = cassandra.hosts()
    assert nodes
    assert cassandra.connected_hosts() == nodes
    cassandra.close()
    assert cassandra.connected_hosts() is None


def _read_in_child(pipe: Connection, channel_id: int) -> None:
    pipe.send((os.getpid(), cassandra.execute(SELECT, (channel_id,))))
    cassandra.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_opens_its_own_session() -> None:
    channel_id = fresh_id()
    write_pins(channel_id, 3)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_read_in_child, args=(there, channel_id))
    child.start()
    assert here.poll(30), "the child hangs"
    pid, rows = here.recv()
    child.join(30)
    assert child.exitcode == 0
    assert pid != os.getpid()
    assert rows == [(2,), (1,), (0,)]
    assert len(cassandra.execute(SELECT, (channel_id,))) == 3


@pytest.fixture
def _unreachable_servers() -> Iterator[None]:
    """Point this process's session to a closed port."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    kept = settings.CASSANDRA
    settings.CASSANDRA = copy.copy(kept) | {"port": port}
    cassandra.close()
    yield
    settings.CASSANDRA = kept
    cassandra.close()


@pytest.mark.usefixtures("_unreachable_servers")
def test_unresponsive_servers_raise_store_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="No Cassandra node answers"):
        messages.read_message(1, 2)


@pytest.mark.usefixtures("_unreachable_servers")
def test_a_failed_attempt_to_connect_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (cassandra.has_failed_to_connect(), describe_cassandra_outage()) == (False, "")
    with pytest.raises(StoreUnavailable):
        cassandra.hosts()
    assert (cassandra.has_failed_to_connect(), describe_cassandra_outage()) == (True, "No node of Cassandra is up.")
    # It may have been started again meanwhile.
    monkeypatch.setattr(cassandra, "OUTAGE_SECONDS", 0.0)
    assert (cassandra.has_failed_to_connect(), describe_cassandra_outage()) == (False, "")


@pytest.mark.usefixtures("_unreachable_servers")
def test_a_session_ends_the_memory_of_failed_attempts() -> None:
    with pytest.raises(StoreUnavailable):
        cassandra.hosts()
    settings.CASSANDRA = REACHABLE
    assert cassandra.hosts()
    assert not cassandra.has_failed_to_connect()
    cassandra.close()
    assert not cassandra.has_failed_to_connect()


def test_a_closed_session_is_reopened() -> None:
    channel_id = fresh_id()
    write_pins(channel_id, 1)
    cassandra.close()
    assert cassandra.execute(SELECT, (channel_id,)) == [(0,)]


def test_a_timeout_of_the_caller_is_distinguished_from_an_outage() -> None:
    pending = cassandra.submit("SELECT * FROM messages LIMIT 5000", timeout=0.001)
    with pytest.raises(DeadlinePassed):
        pending.rows()
