"""Measuring the statements of an operation: the time Postgres needs for them, and how it finds the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.plans import Statement, explain

MAX_MS = 50.0
"""Time of Postgres for all statements of a page, or of one background operation, without a limit of its own."""

GROWING = frozenset(
    {
        "chatstore_channel",
        "chatstore_chatuser",
        "chatstore_guildmember",
        "chatstore_guildrole",
        "chatstore_bucketstamp",
        "chatstore_bucketdeletes",
        "chatstore_channelday",
        "chatstore_channelsummary",
        "chatstore_finding",
        "chatstore_jobrun",
        "moderation_purge",
        "moderation_manifestbucket",
        "moderation_manifestsummary",
        "moderation_purgeday",
        "moderation_purgeperiod",
        "moderation_step",
        "moderation_undo",
        "moderation_undostep",
        "moderation_auditentry",
        "moderation_auditlink",
        "moderation_hold",
    }
)
"""Tables that are never read as a whole."""

_ALL_COUNTED = re.compile(r'^SELECT COUNT\(\*\) AS "__count" FROM "(\w+)"$')


@dataclass(frozen=True, slots=True)
class Measured:
    """Statements of one operation. error: why the operation failed, or ""."""

    statements: Sequence[Statement] = ()
    error: str = ""
    max_ms: float = MAX_MS

    @property
    def ms(self) -> float:
        """The time of all statements."""
        return sum(one.ms for one in self.statements)

    @property
    def rows(self) -> int:
        """The number of rows that were read."""
        return sum(sum(one.rows.values()) for one in self.statements)

    @property
    def scanned(self) -> list[str]:
        """The growing tables that any statement read as a whole, or counted."""
        counted = {found[1] for one in self.statements if (found := _ALL_COUNTED.match(one.sql))}
        return sorted(GROWING & counted.union(*(one.scanned for one in self.statements)))

    @property
    def is_within_limits(self) -> bool:
        """True if the operation works, quickly and without reading a growing table as a whole."""
        return not self.error and not self.scanned and self.ms <= self.max_ms


def measure(operation: Callable[[], object], *, max_ms: float = MAX_MS) -> Measured:
    """Run the operation and undo its changes; return what its statements need with pages cached, as in production."""
    try:
        return Measured(explain(operation, analyses=2, use_indexes=False), max_ms=max_ms)
    except Exception as error:  # noqa: BLE001 - the others are measured all the same
        return Measured(error=f"{type(error).__name__}: {error}"[:200])
