"""Bounded set of keys that this process has written already and need not write again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable


class LRUSet:
    """A set that drops the least recently used keys beyond `limit`. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys

    def add(self, key: Hashable) -> None:
        with self._lock:
            self._keys[key] = None
            self._keys.move_to_end(key)
            while len(self._keys) > self._limit:
                self._keys.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._keys.clear()
