"""What holds cover: messages that no purge may remove until somebody lifts the hold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID

Row = TypeVar("Row", bound=Sequence[Any])


@dataclass(frozen=True, slots=True)
class Cover:
    """What the holds over one channel cover there. hold_ids: which holds those are."""

    hold_ids: frozenset[int] = frozenset()
    everything: bool = False
    authors: frozenset[int] = frozenset()
    messages: frozenset[int] = frozenset()

    def covers(self, message_id: int, author_id: int | None) -> bool:
        """Whether a message is held. author_id: None where only the rest of a late edit is there."""
        return self.everything or author_id in self.authors or message_id in self.messages

    def __bool__(self) -> bool:
        return bool(self.hold_ids)


def time_in(intervals: Iterable[tuple[dt.datetime, dt.datetime]]) -> dt.timedelta:
    """How long at least one of the intervals (from, until) lasted; those that end before they begin are none."""
    total, until = dt.timedelta(0), None
    for begin, end in sorted(intervals):
        since = begin if until is None else max(begin, until)
        if end > since:
            total, until = total + (end - since), end
    return total


@dataclass(slots=True)
class Spared:
    """Takes what is held out of rows that begin with the message id and the author. ids: what was taken out."""

    cover: Cover = Cover()
    ids: list[int] = field(default_factory=list)

    def leave(self, rows: list[Row]) -> list[Row]:
        """The rows that are not held."""
        if not self.cover:
            return rows
        held = {row[MESSAGE_ID] for row in rows if self.cover.covers(row[MESSAGE_ID], row[AUTHOR_ID])}
        self.ids.extend(held)
        return [row for row in rows if row[MESSAGE_ID] not in held] if held else rows


def without(ids: Sequence[int], held: Iterable[int]) -> Sequence[int]:
    """Those of the ascending ids that are not held, ascending."""
    apart = frozenset(held)
    return sorted(frozenset(ids) - apart) if apart else ids
