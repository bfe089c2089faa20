"""Iteration over the ledger for a page: from a bucket on, in one direction, a few rows at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.conf import settings

from chatstore.domain.buckets import bucket_at, bucket_of
from chatstore.domain.slices import fill_gaps
from chatstore.store import ledger
from chatstore.store.ledger import LedgerRow, NewestRows, PendingRows

ROWS_PER_READ = 256
"""Rows per further read: seven years of a channel."""


def read_ahead(channel_ids: Sequence[int]) -> None:
    """Read the newest rows of several channels together, for windows that are created within a second."""
    if settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        ledger.read_newest_rows([i for i in channel_ids if ledger.cached_newest(i) is None])


class LedgerWindow:
    """A channel's ledger rows from the bucket `start` (inclusive) on, in chunks.

    Rows read within the last second come from the cache; otherwise the first chunk is requested when the window is
    created, and awaited when it is needed. That chunk is a long one if the last page had to read beyond a short one, as
    in a channel that was emptied.
    """

    def __init__(self, channel_id: int, *, start: int, descending: bool) -> None:
        self._channel_id = channel_id
        self._start = start
        self._descending = descending
        self._ended = False
        self._ready: list[LedgerRow] | None = None
        self._pending: PendingRows | None = None
        self._newest: NewestRows | None = None
        self._ledger_is_complete: bool = settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN
        if self._ledger_is_complete and not self._use_cache():
            seen = ledger.last_known_newest(channel_id)
            was_short = seen is not None and seen.was_short
            self._pending = self._submit(ROWS_PER_READ if was_short else ledger.NEWEST_ROWS)

    @property
    def is_ready(self) -> bool:
        """Return whether the first rows are available without waiting."""
        return self._ready is not None

    def next_rows(self) -> list[LedgerRow]:
        """Return the next rows in the window's direction; empty if there are no more."""
        rows, self._ready = self._ready, None
        if rows:
            return rows
        if self._ended:
            return []
        if not self._ledger_is_complete:
            self._ended = True
            return self._read_with_gaps()
        return self._receive(self._pending or self._submit(ROWS_PER_READ))

    def _submit(self, limit: int) -> PendingRows:
        self._requested_at, self._requested_limit = time.monotonic(), limit
        return ledger.submit_rows(self._channel_id, start=self._start, descending=self._descending, limit=limit)

    def _receive(self, pending: PendingRows) -> list[LedgerRow]:
        rows, self._pending = pending.rows(), None
        self._ended = len(rows) < self._requested_limit
        if self._newest is not None:
            known = self._newest
            self._newest = NewestRows([*known.rows, *rows], known.requested_at, self._ended, was_short=True)
            ledger.extend_cached(self._channel_id, self._newest)
        elif self._descending and self._start == ledger.NEWEST_BUCKET:
            self._newest = NewestRows(rows, self._requested_at, self._ended)
            ledger.cache_newest(self._channel_id, self._newest)
        if rows:
            self._move_past(rows[-1][0])
        return rows

    def _move_past(self, bucket: int) -> None:
        self._start = bucket - 1 if self._descending else bucket + 1

    def _use_cache(self) -> bool:
        """Start with the cached newest rows if they reach as far as this window's start."""
        newest = ledger.cached_newest(self._channel_id)
        if newest is None:
            return False
        rows = newest.rows
        if not newest.is_whole and self._start < rows[-1][0]:
            return False
        if not self._descending:
            self._ready = [row for row in reversed(rows) if row[0] >= self._start]
            self._ended = True
            return True
        self._ready = [row for row in rows if row[0] <= self._start]
        self._ended = newest.is_whole
        self._newest = newest
        if rows:
            self._move_past(rows[-1][0])
        return True

    def _read_with_gaps(self) -> list[LedgerRow]:
        rows = fill_gaps(
            ledger.read_ledger(self._channel_id),
            oldest=bucket_of(self._channel_id),
            newest=bucket_at(time.time_ns() // 1_000_000),
        )
        if self._descending:
            return [row for row in rows if row[0] <= self._start]
        return [row for row in reversed(rows) if row[0] >= self._start]
