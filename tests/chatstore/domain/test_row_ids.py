"""Ids of rows carry their time, their guild's shard and a sequence number."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.row_ids import EPOCH_MS, decode_row_id, encode_row_id, shard_of

INSTAGRAMS_EXAMPLE = 2_217_813_737_473_025_833
"""Row 9001 of user 5001, 264,384,000 s after the epoch."""


def test_the_known_example_is_encoded_and_decoded() -> None:
    assert shard_of(5_001) == 1_001
    assert encode_row_id(EPOCH_MS + 264_384_000_000, shard=1_001, sequence=9_001) == INSTAGRAMS_EXAMPLE
    decoded = decode_row_id(INSTAGRAMS_EXAMPLE)
    assert (decoded.ms - EPOCH_MS, decoded.shard, decoded.sequence) == (264_384_000_000, 1_001, 809)
    assert decoded.time == dt.datetime(2019, 5, 19, tzinfo=dt.UTC)


@given(ms=st.integers(EPOCH_MS, EPOCH_MS + 2**40 - 1), shard=st.integers(0, 8191), sequence=st.integers(0, 1023))
def test_what_was_encoded_is_decoded(ms: int, shard: int, sequence: int) -> None:
    decoded = decode_row_id(encode_row_id(ms, shard=shard, sequence=sequence))
    assert (decoded.ms, decoded.shard, decoded.sequence) == (ms, shard, sequence)


@given(guild_id=st.integers(-(2**63), 2**63 - 1))
def test_a_guild_has_one_of_two_thousand_shards(guild_id: int) -> None:
    assert 0 <= shard_of(guild_id) < 2_000
    assert shard_of(guild_id) == shard_of(guild_id + 2_000)


def test_rows_without_a_guild_belong_to_shard_0() -> None:
    assert shard_of(None) == shard_of(0) == 0


def test_a_shard_of_more_than_13_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="8192"):
        encode_row_id(EPOCH_MS, shard=8_192, sequence=0)
