"""Batches in which quarantined chunks are written: few and small, so that Cassandra does not warn of them."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatstore.store import cassandra
from moderation.store.quarantine import BATCH_BYTES, CHUNKS_PER_BATCH, batch_chunks

pytestmark = pytest.mark.unit

Values = tuple[Any, ...]


@given(st.lists(st.integers(1, 300) | st.integers(1, 2 * BATCH_BYTES), max_size=40))
@example([10] * 12)
def test_a_batch_has_few_small_chunks_or_one_of_any_size(sizes: list[int]) -> None:
    chunks = [(index, bytes(size)) for index, size in enumerate(sizes)]
    batches = list(batch_chunks(chunks))
    assert [values for together in batches for values in together] == chunks
    for together in batches:
        assert 1 <= len(together) <= CHUNKS_PER_BATCH
        assert len(together) == 1 or sum(len(body) for _, body in together) <= BATCH_BYTES
    for together, following in itertools.pairwise(batches):
        # None is smaller than it must be.
        is_full = len(together) == CHUNKS_PER_BATCH
        assert is_full or sum(len(body) for _, body in (*together, following[0])) > BATCH_BYTES


def test_a_single_row_is_sent_without_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Values]] = []

    def submit(cql: str, row: Values, *, consistency: int | None) -> None:
        sent.append((cql, row))

    monkeypatch.setattr(cassandra, "submit", submit)
    cassandra.submit_batch("INSERT", [(1, 2)])
    assert sent == [("INSERT", (1, 2))]
