"""Packed ids are unpacked unchanged, and the hash of a bucket is computed as designed."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.packing import hash_bucket, pack_ids, unpack_ids

int64 = st.integers(-(1 << 62), (1 << 62) - 1)
id_sets = st.sets(int64, max_size=200).map(sorted)


@given(id_sets)
def test_packed_ids_are_unpacked_unchanged(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == ids


def test_nothing_packs_to_nothing() -> None:
    assert unpack_ids(pack_ids([])) == []
    assert unpack_ids(None) == []


@pytest.mark.parametrize("ids", [[2, 1], [1, 1], [5, 6, 6]])
def test_unsorted_or_repeated_ids_are_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        pack_ids(ids)


@given(int64, id_sets)
def test_the_manifest_hash_is_sha256_over_sorted_big_endian_pairs(channel: int, ids: list[int]) -> None:
    by_hand = hashlib.sha256(b"".join(struct.pack(">qq", channel, message) for message in ids)).digest()
    assert hash_bucket(channel, ids) == by_hand


def test_a_million_ids_of_a_busy_channel_take_less_than_eight_megabytes() -> None:
    ids = [(index * 37_000 << 22) | (index % 7) for index in range(1_000_000)]
    assert len(pack_ids(ids)) < 8_000_000
