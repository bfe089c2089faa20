"""A node dies: nothing is lost in silence, nothing is called empty, and all goes on afterwards."""

import os
import time
from collections.abc import Iterator

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import first_id_at
from chatstore.local.layout import read_stack
from chatstore.local.servers import start_node, stop_node
from chatstore.operations import messages
from chatstore.store import withdrawn
from chatstore.store.reader import read_page
from tests.chatstore.arranging import VICTOR, fresh_id, ids_of, now_ms
from tests.waiting import wait_until_nodes_are_up

BACK_SECONDS = 60.0


@pytest.fixture
def _node_stopped() -> Iterator[None]:
    """The second node is killed; whatever the test does, it is started again."""
    stack = read_stack(os.environ)
    stop_node(stack, 1, kill=True)
    try:
        yield
    finally:
        start_node(stack, 1)


def wait_until_back(channel_id: int) -> None:
    """Until reads at quorum are answered again, some seconds after the node is."""
    give_up = time.monotonic() + BACK_SECONDS
    while True:
        try:
            read_page(channel_id)
        except StoreUnavailable:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.5)
        else:
            return


@pytest.mark.alone
def test_what_was_given_up_during_an_outage_is_done_by_trying_again(request: pytest.FixtureRequest) -> None:
    channel_id = fresh_id()
    kept = messages.post_message(channel_id, author_id=VICTOR, content="before")
    lost_id = first_id_at(now_ms())

    request.getfixturevalue("_node_stopped")
    check_nothing_is_lost_in_silence(channel_id, kept, lost_id)
    start_node(read_stack(os.environ), 1)
    wait_until_back(channel_id)
    wait_until_nodes_are_up()

    messages.post_message(channel_id, author_id=VICTOR, content="during", message_id=lost_id)
    assert set(ids_of(read_page(channel_id).messages)) == {kept.message_id, lost_id}
    assert messages.withdraw_message(channel_id, kept.message_id, actor=VICTOR)
    assert ids_of(read_page(channel_id).messages) == [lost_id]
    assert kept.message_id in withdrawn.read_withdrawals(channel_id, bucket_of(kept.message_id)).certain


def check_nothing_is_lost_in_silence(channel_id: int, kept: Message, lost_id: int) -> None:
    """With one of two replicas gone, LOCAL_QUORUM can neither read nor write."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="given up"):
        messages.post_message(channel_id, author_id=VICTOR, content="during", message_id=lost_id)
    assert time.monotonic() - began < messages.GIVE_UP_SECONDS + 1
    with pytest.raises(StoreUnavailable):
        messages.withdraw_message(channel_id, kept.message_id, actor=VICTOR)
    with pytest.raises(StoreUnavailable):
        messages.edit_message(channel_id, kept.message_id, actor=VICTOR, content="x")
    with pytest.raises(StoreUnavailable):
        read_page(channel_id)
