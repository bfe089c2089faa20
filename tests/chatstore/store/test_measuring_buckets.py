"""A bucket's figures equal those that Cassandra's own tools print, and are unknown before a measurement."""

import datetime as dt
import json
import os

import pytest
from django.conf import settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.local.layout import read_stack
from chatstore.store import cassandra, repairs
from chatstore.store.measuring import measure_bucket
from chatstore.store.top_partitions import TopPartitions, read_latest
from tests.chatstore.channels import delete_rows, fresh_id, now_ms, write_messages
from tests.chatstore.top_partition_lists import make_room_in_lists
from tests.processes import call_nodetool

_RANGE = "DELETE FROM messages WHERE channel_id = ? AND bucket = ? AND message_id >= ? AND message_id < ?"
_DROP = "DELETE FROM messages WHERE channel_id = ? AND bucket = ?"

ROWS = 40
BUCKET = bucket_at(now_ms()) - 3


@pytest.fixture(scope="module", autouse=True)
def _room_in_lists() -> None:
    make_room_in_lists()


def arrange(*, drop: bool) -> tuple[int, int]:
    """Write a bucket of forty messages and delete some; return its channel and the number of tombstones."""
    channel_id = fresh_id()
    first, _ = bucket_ids(BUCKET)
    ids = [first + number for number in range(1, ROWS + 1)]
    write_messages(channel_id, ids)
    key = (channel_id, BUCKET)
    if drop:
        cassandra.execute(_DROP, key)
        return channel_id, 1
    delete_rows(channel_id, ids[:15])
    for begin in (20, 26, 32):
        cassandra.execute(_RANGE, (*key, ids[begin], ids[begin + 5]))
    # A row delete counts one, a range two.
    return channel_id, 15 + 3 * 2


def print_figures(key: str) -> tuple[int, int]:
    """Return (bytes, tombstones) of a partition as nodetool prints them for the first node."""
    keyspace = settings.CASSANDRA["keyspace"]
    completed = call_nodetool(read_stack(os.environ), 0, "tablestats", "-F", "json", f"{keyspace}.messages")
    table = json.loads(completed.stdout)[keyspace]["tables"]["messages"]
    return int(table["top_size_partitions"][key]), int(table["top_tombstone_partitions"][key])


@pytest.mark.slow
def test_rows_and_ranges_equal_the_nodetool_output_of_every_replica_and_are_unknown_before() -> None:
    channel_id, tombstones = arrange(drop=False)
    key = (channel_id, BUCKET)
    _, replicas = repairs.locate_bucket(*key)
    before = read_lists()
    assert all(key not in lists.tombstones and key not in lists.sizes for lists in before.values())
    began_at = dt.datetime.now(dt.UTC)

    measured = measure_bucket(*key)

    assert measured.in_sync
    assert measured.tombstones == dict.fromkeys(replicas, tombstones)
    assert (measured.max_tombstones_seen, measured.tombstones_apart) == (tombstones, 0)
    assert print_figures(f"{channel_id}:{BUCKET}") == (measured.bytes["127.0.0.1"], tombstones)
    # The page shows the figures of the last read without running nodetool again.
    known = read_lists()
    assert {host: lists.tombstones[key] for host, lists in known.items()} == measured.tombstones
    for lists in known.values():
        assert lists.updated_at is not None
        assert lists.updated_at > began_at - dt.timedelta(seconds=2)


def test_a_partition_delete_is_one_tombstone() -> None:
    channel_id, tombstones = arrange(drop=True)
    measured = measure_bucket(channel_id, BUCKET)
    assert set(measured.tombstones.values()) == {tombstones}


def read_lists() -> dict[str, TopPartitions]:
    """Return the lists of both nodes."""
    found = {host: lists for host, lists in read_latest().items() if isinstance(lists, TopPartitions)}
    assert set(found) == {"127.0.0.1", "127.0.0.2"}
    return found
