"""When an author posted for the first time, as far as it is known.

It is not always known exactly: the first messages may have been deleted, and what was deleted is only known to have
been posted within a period. A purge must not delete on a guess, so every question is answered by the bound that keeps
the message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from chatstore.domain.milliseconds import HOUR_MS


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """Bounds of the time (Unix ms) of an author's first message, both inclusive."""

    earliest: int
    latest: int

    @property
    def is_exact(self) -> bool:
        """True if the time is known, not only a period."""
        return self.earliest == self.latest

    def is_within(self, ms: int, hours: int) -> bool:
        """Return whether a time is certainly at most so many hours after the first message, and not before it."""
        return 0 <= ms - self.earliest <= hours * HOUR_MS

    def may_be_within(self, ms: int, hours: int) -> bool:
        """Return whether a time is possibly at most so many hours after the first message."""
        return ms - self.latest <= hours * HOUR_MS

    def is_clear(self, ms: int, hours: int) -> bool:
        """Return whether better bounds cannot change the answer of `is_within` or `may_be_within`."""
        return self.is_within(ms, hours) == self.may_be_within(ms, hours)


FirstSeenOf: TypeAlias = Callable[[int], FirstSeen | None]
"""When an author posted for the first time; None if nothing is known about it."""


def first_seen_unknown(_author_id: int) -> None:
    """Return None for every author."""
