"""Result of one quorum read of a whole bucket, and the live bounds that follow from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import is_sealed
from chatstore.domain.live import Live, live_from_read
from chatstore.domain.milliseconds import HOUR_MS
from chatstore.domain.snowflakes import first_id_at

SETTLED_MS = HOUR_MS
"""An open bucket's `from` is at most the id of an hour ago: newer posts skip the marking path."""


@dataclass(slots=True)
class WholeRead:
    """Result of one quorum read of a whole bucket. began_us: Postgres's clock (µs) before it began.

    count: all rows; authored: rows with an author, which are the messages.
    """

    began_us: int
    lowest: int | None = None
    highest: int | None = None
    count: int = 0
    authored: int = 0

    @property
    def measured_at(self) -> dt.datetime:
        """The start of the read, as stored with figures."""
        return dt.datetime.fromtimestamp(self.began_us / 1e6, tz=dt.UTC)

    @property
    def figures(self) -> dict[str, int]:
        """The counts by figure name. authorless: rows that maintenance deletes."""
        return {"live_rows": self.authored, "authorless": self.count - self.authored}

    def add(self, rows: Sequence[tuple[int, int | None]]) -> None:
        """Add a page of (message id, author id), newest first; pages are added newest first as well."""
        if not rows:
            return
        self.highest = rows[0][0] if self.highest is None else self.highest
        self.lowest = rows[-1][0]
        self.count += len(rows)
        self.authored += sum(1 for _, author_id in rows if author_id is not None)

    def live(self, bucket: int) -> Live:
        """Return the live bounds that the ledger may store for the bucket.

        Rows without an author are counted: maintenance must find them, and an insert for one of them may still be in
        flight.
        """
        return live_of_bucket(bucket, self.lowest, self.highest, self.count, began_us=self.began_us)


def live_of_bucket(bucket: int, lowest: int | None, highest: int | None, count: int, *, began_us: int) -> Live:
    """Return the same bounds for a read that was aggregated by the servers. began_us: Postgres's clock before it
    began.
    """
    now_ms = began_us // 1_000
    sealed = is_sealed(bucket, now_ms=now_ms)
    return live_from_read(lowest, highest, count, sealed=sealed, settled_before=first_id_at(now_ms - SETTLED_MS))
