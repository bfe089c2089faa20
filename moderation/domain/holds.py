"""Coverage of holds: messages that no purge may delete until the hold is lifted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID

Row = TypeVar("Row", bound=Sequence[Any])


@dataclass(frozen=True, slots=True)
class HoldCoverage:
    """Messages of one channel that holds cover. hold_ids: the holds that apply to the channel."""

    hold_ids: frozenset[int] = frozenset()
    everything: bool = False
    authors: frozenset[int] = frozenset()
    messages: frozenset[int] = frozenset()

    def covers(self, message_id: int, author_id: int | None) -> bool:
        """Return whether a message is held. author_id: None for a row that contains only a late edit."""
        return self.everything or author_id in self.authors or message_id in self.messages

    def __bool__(self) -> bool:
        return bool(self.hold_ids)


def total_time(intervals: Iterable[tuple[dt.datetime, dt.datetime]]) -> dt.timedelta:
    """Return the total time that at least one of the intervals (from, until) covers.

    Intervals that end before they begin count as empty.
    """
    total, until = dt.timedelta(0), None
    for begin, end in sorted(intervals):
        since = begin if until is None else max(begin, until)
        if end > since:
            total, until = total + (end - since), end
    return total


@dataclass(slots=True)
class HeldRows:
    """Filter for held rows. Rows begin with message id and author id. ids: the ids that it filtered out."""

    coverage: HoldCoverage = HoldCoverage()
    ids: list[int] = field(default_factory=list)

    def without_held(self, rows: list[Row]) -> list[Row]:
        """Return the rows that are not held."""
        if not self.coverage:
            return rows
        held = {row[MESSAGE_ID] for row in rows if self.coverage.covers(row[MESSAGE_ID], row[AUTHOR_ID])}
        self.ids.extend(held)
        return [row for row in rows if row[MESSAGE_ID] not in held] if held else rows


def without(ids: Sequence[int], held: Iterable[int]) -> Sequence[int]:
    """Return the ids that are not held, ascending. ids: ascending."""
    excluded = frozenset(held)
    return sorted(frozenset(ids) - excluded) if excluded else ids
