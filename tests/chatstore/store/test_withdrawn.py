"""Withdrawals are stored by bucket, certain or claimed; several claims of one message coexist."""

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.withdrawals import Withdrawals
from chatstore.store import cassandra
from chatstore.store.withdrawn import note_claim, note_withdrawn, read_withdrawal, read_withdrawals
from tests.chatstore.channels import fresh_id

VICTOR, VERA = 4242, -4343


def note_as_of_old(channel_id: int, message_id: int) -> None:
    """Write a legacy row, which names no user."""
    cql = "INSERT INTO withdrawn (channel_id, bucket, message_id) VALUES (?, ?, ?)"
    cassandra.execute(cql, (channel_id, bucket_of(message_id), message_id))


def test_withdrawals_by_authors_are_certain_and_stored_by_bucket() -> None:
    channel_id = fresh_id()
    first, last = bucket_ids(7)
    for message_id in (first, last, last + 1, first):
        note_withdrawn(channel_id, message_id, author_id=VICTOR)
    assert read_withdrawals(channel_id, 7) == Withdrawals({first, last})
    assert read_withdrawal(channel_id, last) == Withdrawals({last})
    assert read_withdrawals(channel_id, 6) == Withdrawals()


def test_every_claimant_of_a_message_is_stored() -> None:
    channel_id = fresh_id()
    first, _ = bucket_ids(-7)
    for actor in (VERA, VICTOR, VERA):
        note_claim(channel_id, first, actor=actor)
    assert read_withdrawals(channel_id, -7) == Withdrawals(claims={first: {VICTOR, VERA}})


def test_a_claim_does_not_downgrade_a_certain_withdrawal() -> None:
    channel_id = fresh_id()
    first, last = bucket_ids(7)
    note_withdrawn(channel_id, first, author_id=VICTOR)
    note_as_of_old(channel_id, last)
    for message_id in (first, last):
        note_claim(channel_id, message_id, actor=VERA)
    assert read_withdrawals(channel_id, 7) == Withdrawals({first, last})


def test_a_claimed_message_that_is_then_withdrawn_is_certain() -> None:
    channel_id = fresh_id()
    first, _ = bucket_ids(7)
    note_claim(channel_id, first, actor=VERA)
    note_withdrawn(channel_id, first, author_id=VICTOR)
    assert read_withdrawals(channel_id, 7) == Withdrawals({first})
