"""A channel made unreadable by foreign row deletes can be opened, previewed, purged and repaired."""

import re
import time
from collections import deque
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, first_id_at, ms_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import cassandra, scans
from chatstore.store.reading.reader import read_page, trace_newest_page
from chatstore.store.reading.search import Search
from moderation.domain.states import PurgeState, StepKind
from moderation.models import Step
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.totals import totals_of
from moderation.store.deletes import delete_rows
from moderation.store.pace import Pace
from tests.moderation.channels import (
    WILMA,
    by_victor,
    confirm,
    ids_of,
    make_channel,
    now_ms,
    old_ids,
    preview,
    write,
)

pytestmark = pytest.mark.slow

LIVE = 600
DEAD = 150_000
"""Newer than all live messages: the newest page must get past them, and Cassandra aborts reads at 100,000."""

MAX_TOMBSTONES = 500
NEWEST = "SELECT message_id FROM messages WHERE channel_id = ? AND bucket = ? LIMIT 50"


def open_ids(count: int) -> list[int]:
    """Return ids over an hour old, spread over an open bucket, ascending."""
    newest = first_id_at(now_ms() - 61 * MINUTE_MS)
    first = max(bucket_ids(bucket_of(newest))[0], first_id_at(now_ms() - DAY_MS))
    step = (newest - first) // count
    return [first + step * index for index in range(count)]


def overload(channel: Channel, ids: list[int]) -> list[int]:
    """Delete by row all but the oldest 600 messages, of which every second is Victor's; return the live ids."""
    live, dead = ids[:LIVE], ids[LIVE:]
    write(channel, live[::2])
    write(channel, live[1::2], author=WILMA)
    rows = [(message_id, ms_of(message_id) * 1_000) for message_id in dead]
    delete_rows(channel.id, bucket_of(dead[0]), [rows], pace=Pace(DEAD))
    with pytest.raises(TooManyTombstones):
        cassandra.execute(NEWEST, (channel.id, bucket_of(dead[0])))
    return live


def tombstones_in(channel: Channel, bucket: int) -> int:
    pages = scans.read_all_ids(channel.id, bucket)
    deque(pages, maxlen=0)
    return pages.count_tombstones()


def open_channel(client: Client, channel: Channel) -> list[int]:
    """Follow "Earlier messages" to the first page that shows messages; return its ids."""
    url: str | None = f"/channels/{channel.id}/"
    pages = 0
    while url is not None:
        answer = client.get(url)
        assert answer.status_code == 200
        html = answer.content.decode()
        found = re.findall(r'<article [^>]*id="m(-?\d+)"', html)
        if found:
            return sorted(map(int, found))
        older = re.search(r'data-more="older" href="([^"]+)"', html)
        assert "Looked back to" in html
        url, pages = older[1].partition("#")[0] if older else None, pages + 1
        assert pages < 20
    raise AssertionError("the page shows the channel as empty")


def open_all_pages(channel: Channel) -> Search:
    search = Search(channel.id, low=MIN_ID, high=MAX_ID, descending=True, need=51, deadline=time.monotonic() + 60)
    search.run()
    return search


@pytest.mark.parametrize("make_ids", [old_ids, open_ids], ids=["sealed", "open"])
def test_a_channel_full_of_tombstones_can_be_opened_previewed_purged_and_repaired(
    mona: User, sign_in: Callable[[User], Client], make_ids: Callable[[int], list[int]]
) -> None:
    channel = make_channel()
    ids = make_ids(LIVE + DEAD)
    bucket = bucket_of(ids[0])
    live = overload(channel, ids)
    client = sign_in(mona)
    assert set(open_channel(client, channel)) <= set(live)
    assert [message.message_id for message in read_page(channel.id, deadline_seconds=60).messages] == live[:-51:-1]

    purge = preview(mona, by_victor(channel))
    assert (purge.state, purge.manifest, purge.scanned) == (PurgeState.READY, LIVE // 2, LIVE)
    purge = run_purge(confirm(mona, purge).id, idle_timeout_seconds=30)
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, LIVE // 2)
    for rewrite in Step.objects.filter(channel_id=channel.id, kind=StepKind.REWRITE):
        # As if seventy minutes had passed.
        Step.objects.filter(purge_id=rewrite.purge_id).update(due_at=None)
        assert run_purge(rewrite.purge_id, idle_timeout_seconds=30).state == PurgeState.DONE
    assert not Step.objects.filter(channel_id=channel.id, kind=StepKind.REWRITE).exclude(state="counted").exists()

    assert ids_of(channel, bucket) == live[1::2]
    assert tombstones_in(channel, bucket) <= MAX_TOMBSTONES
    assert trace_newest_page(channel.id).tombstones <= MAX_TOMBSTONES
    assert open_channel(client, channel) == live[1::2][-50:]


def test_the_next_page_does_not_retry_a_read_that_failed() -> None:
    channel = make_channel()
    live = overload(channel, old_ids(LIVE + DEAD))
    first, second = open_all_pages(channel), open_all_pages(channel)
    widest = [max(part.high - part.low for part, _ in search.requested) for search in (first, second)]
    assert widest[1] <= widest[0] // 2 + 1
    assert len(second.requested) < len(first.requested)
    for search in (first, second):
        assert [row[0] for row in search.rows][:51] == live[:-52:-1]
