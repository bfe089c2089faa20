"""Readable widths of buckets full of tombstones, so that the next page does not retry an interval that failed.

Only a hint: it changes how many statements a page needs, never its result.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

EXPIRE_SECONDS = 300.0
"""The bucket may be repaired by then; a page that finds it is not pays one failed read."""

MAX_BUCKETS = 10_000

_Key = tuple[int, int]


class Widths:
    """Widths by (channel id, bucket); the oldest are dropped. Thread-safe."""

    def __init__(self) -> None:
        self._noted: OrderedDict[_Key, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, channel_id: int, bucket: int, width: int) -> None:
        """Record that an interval of twice this many ids could not be read."""
        with self._lock:
            self._noted[channel_id, bucket] = (time.monotonic(), width)
            self._noted.move_to_end((channel_id, bucket))
            while len(self._noted) > MAX_BUCKETS:
                self._noted.popitem(last=False)

    def get(self, channel_id: int, bucket: int) -> int | None:
        """Return how many ids of the bucket to read at once; None if nothing failed lately."""
        noted = self._noted.get((channel_id, bucket))
        return noted[1] if noted is not None and time.monotonic() - noted[0] < EXPIRE_SECONDS else None


widths = Widths()
"""This process's instance."""
