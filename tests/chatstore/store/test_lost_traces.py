"""A bucket whose trace has lost events is read once more for its tombstones."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.store import cassandra, messages, scans, traces
from tests.chatstore.channels import VICTOR, delete_rows, fresh_id


@pytest.fixture
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "TRACE_WAIT_SECONDS", 0.2)


def make_bucket(*, rows: int, deleted: int) -> int:
    channel_id = fresh_id()
    messages.insert_messages([Message(channel_id, one, VICTOR) for one in range(rows)], stamp_us=1)
    delete_rows(channel_id, range(deleted))
    return channel_id


def forget(read: scans.BucketPages) -> None:
    """Remove the trace of a read that has arrived, as if the nodes had had no room for its events."""
    assert read.count_tombstones() >= 0
    for trace in read._traces:
        cassandra.execute("DELETE FROM system_traces.events WHERE session_id = ?", (trace,))


@pytest.mark.usefixtures("_short_wait")
def test_reads_without_their_traces_are_counted_by_another_read() -> None:
    channels = {make_bucket(rows=30, deleted=deleted): deleted for deleted in (0, 7, 11)}
    reads = [scans.read_all_ids(channel_id, 0) for channel_id in channels]
    assert [sum(map(len, read)) for read in reads] == [30, 23, 19]
    for read in reads[1:]:
        forget(read)
    assert scans.count_tombstones(reads) == list(channels.values())


@pytest.mark.usefixtures("_short_wait")
def test_tombstones_are_not_invented_if_no_trace_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    read = scans.read_all_ids(make_bucket(rows=30, deleted=7), 0)
    assert sum(map(len, read)) == 23

    def lose(trace_id: uuid.UUID, consistency: int) -> dict[str, Any]:
        return {}

    forget(read)
    monkeypatch.setattr(traces, "_query_trace", lose)
    monkeypatch.setattr(traces, "_parse_rows", lambda events: {})
    with pytest.raises(StoreUnavailable, match="has not reported"):
        read.count_tombstones()
