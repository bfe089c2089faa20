"""The store does not know who wrote a missing message: a withdrawal of it is recorded as a claim."""

import time

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import MAX_ID, first_id_at
from chatstore.domain.withdrawals import Withdrawals
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages, withdrawn
from tests.chatstore.channels import VICTOR, fresh_id, now_ms, write_messages

VERA = 4343


def noted(channel_id: int, message_id: int) -> Withdrawals:
    return withdrawn.read_withdrawals(channel_id, bucket_of(message_id))


def test_a_claim_records_the_claimant() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - DAY_MS)
    for actor in (VERA, VICTOR, VERA):
        assert not withdraw_message(channel_id, message_id, actor=actor)
    assert noted(channel_id, message_id) == Withdrawals(claims={message_id: {VERA, VICTOR}})


def test_a_claim_does_not_delete_a_later_post() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - DAY_MS)
    before = time.time_ns() // 1000
    withdraw_message(channel_id, message_id, actor=VERA)
    (written,) = write_messages(channel_id, [message_id])
    # As written by an undo that had started before.
    messages.insert_message(written, stamp_us=before)
    assert messages.read_message(channel_id, message_id) == written


def test_a_post_in_flight_is_deleted_too() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - 2_000)
    stamp = time.time_ns() // 1000
    withdraw_message(channel_id, message_id, actor=VICTOR)
    (written,) = write_messages(channel_id, [message_id])
    messages.insert_message(written, stamp_us=stamp)
    assert messages.read_message(channel_id, message_id) is None


def test_a_restored_message_can_be_withdrawn_by_its_author_but_not_by_a_claimant() -> None:
    channel_id, message_id = fresh_id(), first_id_at(now_ms() - DAY_MS)
    withdraw_message(channel_id, message_id, actor=VERA)
    write_messages(channel_id, [message_id])
    with pytest.raises(Forbidden):
        withdraw_message(channel_id, message_id, actor=VERA)
    assert messages.read_message(channel_id, message_id) is not None
    assert withdraw_message(channel_id, message_id, actor=VICTOR)
    assert messages.read_message(channel_id, message_id) is None
    assert noted(channel_id, message_id) == Withdrawals({message_id})


def test_an_invalid_user_is_refused() -> None:
    with pytest.raises(BadInput, match="64 bits"):
        withdraw_message(fresh_id(), first_id_at(now_ms() - DAY_MS), actor=MAX_ID + 1)
