"""The incident: all but one of a channel's 200,000 messages are deleted, and the channel is opened.

Both channels contain the same and lose the same right before the read: nothing is flushed or compacted. Only the way of
deleting differs.
"""

from collections.abc import Iterator

import cassandra as driver
import pytest
from django.conf import settings

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import ms_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import authors, cassandra, ledger, messages, traces
from chatstore.store.driver_errors import TOMBSTONE_FAILURE
from chatstore.store.reading.reader import read_page, trace_newest_page
from moderation.domain.states import PurgeState
from moderation.operations.steps.totals import totals_of
from moderation.store.deletes import delete_rows
from moderation.store.pace import Pace
from tests.moderation.channels import VICTOR, WILMA, by_victor, make_channel, old_ids, purge_now

pytestmark = pytest.mark.slow

SIZE = 200_000
MAX_TOMBSTONES = 500

IDS = old_ids(SIZE)
BUCKET = bucket_of(IDS[0])
SURVIVOR = IDS[SIZE // 4]
"""More messages lie between it and the newest than the 100,000 at which Cassandra aborts a read."""

MATCHED = [message_id for message_id in IDS if message_id != SURVIVOR]

NEWEST = "SELECT message_id, author_id, content FROM messages WHERE channel_id = ? AND bucket = ? LIMIT 50"


def post_some(channel: Channel) -> Iterator[Message]:
    for message_id in IDS:
        author = WILMA if message_id == SURVIVOR else VICTOR
        yield Message(channel_id=channel.id, message_id=message_id, author_id=author, content="x" * 80)


@pytest.fixture
def channel() -> Channel:
    """Create a channel with 200,000 messages in one sealed bucket, each stamped with the time of its id."""
    made = make_channel()
    ledger.ensure_row(made.id, BUCKET)
    authors.ensure_author_buckets({(author, BUCKET, made.id) for author in (VICTOR, WILMA)})
    messages.insert_messages(post_some(made), stamp_us=messages.posted_stamp)
    return made


def test_the_newest_page_is_fast_right_after_a_purge_of_all_but_one_message(mona: User, channel: Channel) -> None:
    purge = purge_now(mona, by_victor(channel))
    assert purge.state == PurgeState.DONE
    assert totals_of(purge).deleted == SIZE - 1
    cost = trace_newest_page(channel.id)
    assert [message.message_id for message in cost.page.messages] == [SURVIVOR]
    assert len(cost.per_replica) == sum(settings.CASSANDRA["replication"].values())
    assert all(dead <= MAX_TOMBSTONES for _, dead in cost.per_replica.values())
    whole = traces.execute_traced(NEWEST, (channel.id, BUCKET), consistency=cassandra.ALL)
    assert whole.tombstones <= MAX_TOMBSTONES
    page = read_page(channel.id)
    assert ([message.message_id for message in page.messages], page.older) == ([SURVIVOR], None)


def test_an_equal_channel_cannot_be_read_after_a_row_delete_per_message(channel: Channel) -> None:
    rows = [(message_id, ms_of(message_id) * 1_000) for message_id in MATCHED]
    delete_rows(channel.id, BUCKET, [rows], pace=Pace(SIZE))
    with pytest.raises(TooManyTombstones) as given_up:
        cassandra.execute(NEWEST, (channel.id, BUCKET))
    cause = given_up.value.__cause__
    assert isinstance(cause, driver.ReadFailure)
    assert TOMBSTONE_FAILURE in cause.error_code_map.values()
