"""A withdrawal is honoured if its author was known, or if a claimant wrote the message."""

import pytest

from chatstore.domain.withdrawals import NONE, Withdrawals

VICTOR, VERA = 71, -72
NOTED = Withdrawals({1}, {2: {VICTOR, 73}})


@pytest.mark.parametrize(
    ("message_id", "author_id", "counts"),
    [(1, VICTOR, True), (1, None, True), (2, VICTOR, True), (2, VERA, False), (2, None, False), (3, VICTOR, False)],
)
def test_a_claim_counts_for_its_author_alone(message_id: int, author_id: int | None, counts: bool) -> None:
    assert NOTED.has(message_id, author_id=author_id) is counts


def test_without_a_record_nothing_is_withdrawn() -> None:
    assert not NONE.has(1, author_id=VICTOR)
