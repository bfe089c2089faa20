"""A sketch of a set of message ids: bits that say of most other ids that they are not in it.

One byte for each id of the set, in which each id sets one bit. A bit that is not set is a
sure no; one that is set is a yes or, for one foreign id in eight, a mistake: 1 - e^(-1/8)
of the bits are set. Who wants to know then unpacks the ids themselves. Postgres reads the
one byte it needs, so that thousands of steps in one bucket are asked in milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moderation.domain.packing import pack_ids

_SCATTER = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio (Knuth's multiplicative hash): ids that lie evenly apart land far apart."""

_BITS_64 = (1 << 64) - 1


def place_of(message_id: int) -> tuple[int, int]:
    """Where an id's bit lies: (32 bits that choose the byte, scaled to the sketch's length; the bit in it, 0 to 7)."""
    scattered = message_id * _SCATTER & _BITS_64
    return scattered >> 32, scattered >> 29 & 7


def sketch_ids(ids: Sequence[int]) -> bytes:
    """The sketch of some ids, a byte for each."""
    size = len(ids)
    sketch = bytearray(size)
    for message_id in ids:
        scattered = message_id * _SCATTER & _BITS_64
        sketch[(scattered >> 32) * size >> 32] |= 1 << (scattered >> 29 & 7)
    return bytes(sketch)


def may_hold(sketch: bytes | memoryview, message_id: int) -> bool:
    """Whether an id may be in the set; False is sure."""
    byte, bit = place_of(message_id)
    return bool(sketch) and bool(sketch[byte * len(sketch) >> 32] >> bit & 1)


def step_columns(ids: Sequence[int]) -> dict[str, Any]:
    """The columns in which a step keeps its ids, ascending, and by which one of them is found again."""
    return {
        "ids": pack_ids(ids),
        "count": len(ids),
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "sketch": sketch_ids(ids),
    }
