"""Restored messages are equal even after flush, compaction and repair of the remaining data."""

import datetime as dt
import os

import pytest
from django.conf import settings

from chatstore.domain.buckets import bucket_of
from chatstore.local.layout import read_stack
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import cassandra
from chatstore.store.reading.reader import read_page
from devstack.cassandra import NAMES
from moderation.domain.planner import DeleteStrategy
from moderation.domain.states import PurgeState
from moderation.models import Purge, Step
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.moderation.channels import confirm, make_channel, old_ids, preview, purge_now, run_to_end
from tests.processes import call_nodetool
from tests.soak.scene import Row, rows_of, select_victor, write_bucket

pytestmark = pytest.mark.slow

SHAPES = {
    DeleteStrategy.ROWS: (90, 10),
    DeleteStrategy.RANGES: (300, 80),
    DeleteStrategy.DROP: (120, 1_000),
    DeleteStrategy.REWRITE: (1_200, 2),
}
"""Messages per bucket for each delete strategy, and one in how many is kept."""

_TOKEN = "SELECT token(channel_id, bucket) FROM messages WHERE channel_id = ? AND bucket = ? LIMIT 1"


def test_an_undo_restores_equal_rows_after_flush_compaction_and_repair(mona: User) -> None:
    whole, half = (
        fill_channel(DeleteStrategy.RANGES, DeleteStrategy.REWRITE),
        fill_channel(DeleteStrategy.DROP, DeleteStrategy.ROWS, DeleteStrategy.RANGES),
    )
    before = {channel.id: rows_of_channel(channel) for channel in (whole, half)}
    page = read_page(half.id, limit=500).messages
    tokens = {f"{one.id}:{bucket}": token_of(one, bucket) for one in (whole, half) for bucket in buckets_of(one)}
    purges = [purge_now(mona, select_victor(whole)), purge_half(mona, half)]
    assert [purge.state for purge in purges] == [PurgeState.DONE, PurgeState.CANCELLED]
    assert strategies_of(purges[0]) == {DeleteStrategy.RANGES, DeleteStrategy.REWRITE}
    assert strategies_of(purges[1]) == {DeleteStrategy.DROP, DeleteStrategy.ROWS}
    flush_compact_and_repair(tokens)
    for purge in purges:
        undo = request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
        assert run_to_end(purge).state == PurgeState.UNDONE
        assert undo_totals_of(undo).restored == totals_of(purge).deleted > 0
    assert {channel.id: rows_of_channel(channel) for channel in (whole, half)} == before
    assert read_page(half.id, limit=500).messages == page


def fill_channel(*strategies: DeleteStrategy) -> Channel:
    """Fill one bucket per strategy, the first one oldest."""
    channel = make_channel()
    for ago, strategy in zip(range(len(strategies) + 1, 1, -1), strategies, strict=True):
        count, keep_one_in = SHAPES[strategy]
        write_bucket(channel, old_ids(count, buckets_ago=ago), keep_one_in=keep_one_in)
    return channel


def buckets_of(channel: Channel) -> list[int]:
    """Return the buckets that contain rows, newest first."""
    return [bucket_of(old_ids(1, buckets_ago=ago)[0]) for ago in (2, 3, 4)]


def rows_of_channel(channel: Channel) -> list[Row]:
    """Return every row with all columns, newest first."""
    return [row for bucket in buckets_of(channel) for row in rows_of(channel, bucket)]


def purge_half(moderator: User, channel: Channel) -> Purge:
    """Run a purge that is cancelled after two steps, before the third one began."""
    purge = confirm(moderator, preview(moderator, select_victor(channel)))
    Step.objects.filter(purge=purge, ordinal=3).update(due_at=dt.datetime(9999, 1, 1, tzinfo=dt.UTC))
    run_to_end(purge)
    cancel_purge(purge.id, moderator=moderator)
    return run_to_end(purge)


def strategies_of(purge: Purge) -> set[str]:
    """Return the strategies of the purge's counted steps."""
    return set(Step.objects.filter(purge=purge, counted_at__isnull=False).values_list("strategy", flat=True))


def token_of(channel: Channel, bucket: int) -> int | None:
    """Return the token of a bucket's partition; None if it is empty."""
    rows = cassandra.execute(_TOKEN, (channel.id, bucket))
    return rows[0][0] if rows else None


def flush_compact_and_repair(tokens: dict[str, int | None]) -> None:
    """Flush, compact and repair these buckets on all nodes; a whole table would take minutes in a used store."""
    keyspace = settings.CASSANDRA["keyspace"]
    filled = {key: token for key, token in tokens.items() if token is not None}
    for node in range(len(NAMES)):
        nodetool(node, "flush", keyspace)
        for key in filled:
            nodetool(node, "compact", "--partition", key, keyspace, "messages")
    for token in filled.values():
        nodetool(0, "repair", "-full", "-st", str(token - 1), "-et", str(token), keyspace, "messages")


def nodetool(node: int, *arguments: str) -> None:
    called = call_nodetool(read_stack(os.environ), node, *arguments)
    assert called.returncode == 0, called.stdout + called.stderr
