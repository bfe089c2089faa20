"""Sets of message ids as bytes (sorted, delta-encoded, compressed), and the hash of such a set.

Format: `<q` count, then zstd over the first id and the differences that follow, each a signed 64-bit little-endian
integer. A million ids take about 5 MB.
"""

from __future__ import annotations

import hashlib
import operator
import struct
import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate

import zstandard

_COUNT = struct.Struct("<q")

ManifestHash = bytes
"""sha256, 32 bytes."""


def pack_ids(ids: Sequence[int]) -> bytes:
    """Pack unique ids in ascending order. Raises `ValueError` for anything else."""
    deltas = array("q", ids[:1])
    deltas.extend(map(operator.sub, ids[1:], ids[:-1]))
    if len(deltas) > 1 and min(deltas[1:]) <= 0:
        raise ValueError("ids must be ascending and unique")
    return _COUNT.pack(len(ids)) + zstandard.compress(_little_endian(deltas), 3)


def unpack_ids(packed: bytes | memoryview | None) -> list[int]:
    """Return the ids, ascending; no ids for None."""
    if packed is None:
        return []
    packed = bytes(packed)
    (count,) = _COUNT.unpack_from(packed)
    deltas = array("q")
    deltas.frombytes(zstandard.decompress(packed[_COUNT.size :]))
    if sys.byteorder == "big":
        deltas.byteswap()
    ids = list(accumulate(deltas))
    if len(ids) != count:
        raise ValueError(f"packed ids declare {count} ids but contain {len(ids)}")
    return ids


def count_packed(packed: bytes | memoryview | None) -> int:
    """Return the number of packed ids; 0 for None. The first eight bytes suffice."""
    return 0 if packed is None else int(_COUNT.unpack_from(bytes(packed))[0])


def hash_bucket(channel_id: int, ids: Sequence[int]) -> ManifestHash:
    """Return the sha256 over a bucket's `channel_id, message_id` pairs, signed 64-bit big-endian. ids: ascending.

    Postgres computes the manifest hash: the sha256 over the hashes of its buckets, by channel and bucket.
    """
    pairs = array("q", [channel_id]) * (2 * len(ids))
    pairs[1::2] = array("q", ids)
    if sys.byteorder == "little":
        pairs.byteswap()
    return hashlib.sha256(pairs.tobytes()).digest()


def _little_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
