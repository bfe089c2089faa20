"""Sketch of a set of message ids (a Bloom filter with one hash): bits that rule out most other ids.

One byte per id of the set, in which each id sets one bit. A bit that is not set is a certain no. A set bit means yes
or, for one foreign id in eight, a false positive: 1 - e^(-1/8) of the bits are set. Callers that need certainty then
unpack the ids. Postgres reads only the one byte it needs, so thousands of steps in one bucket are checked in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moderation.domain.packing import pack_ids

_SCATTER = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio (Knuth's multiplicative hash): spreads evenly spaced ids."""

_BITS_64 = (1 << 64) - 1


def bit_of(message_id: int) -> tuple[int, int]:
    """Return the position of an id's bit: (32 bits that choose the byte, the bit in it from 0 to 7).

    The 32 bits are scaled to the sketch's length.
    """
    scattered = message_id * _SCATTER & _BITS_64
    return scattered >> 32, scattered >> 29 & 7


def sketch_ids(ids: Sequence[int]) -> bytes:
    """Return the sketch of some ids, one byte per id."""
    size = len(ids)
    sketch = bytearray(size)
    for message_id in ids:
        scattered = message_id * _SCATTER & _BITS_64
        sketch[(scattered >> 32) * size >> 32] |= 1 << (scattered >> 29 & 7)
    return bytes(sketch)


def may_contain(sketch: bytes | memoryview, message_id: int) -> bool:
    """Return whether the set may contain an id. False is certain."""
    byte, bit = bit_of(message_id)
    return bool(sketch) and bool(sketch[byte * len(sketch) >> 32] >> bit & 1)


def step_columns(ids: Sequence[int]) -> dict[str, Any]:
    """Return the columns in which a step stores its ids (ascending), and by which a single id is found."""
    return {
        "ids": pack_ids(ids),
        "count": len(ids),
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "sketch": sketch_ids(ids),
    }
