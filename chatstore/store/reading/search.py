"""Search through a channel in one direction for as many messages as a page needs.

It reads slices of buckets between their live ids, so that a deleted range is never touched; only as many buckets at a
time as needed; and the newest bucket beside the ledger instead of after it, guessed from the ledger's last known rows.
Reads that failed on tombstones are retried in halves, and the next pages read such narrow slices from the start. At the
deadline the search ends, but never before it progressed by one slice: the next page begins where this one ended, so
each page must advance.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.slices import MAX_CONCURRENT_SLICES, WAVE_GROWTH, Slice, cut_slices, size_wave
from chatstore.domain.snowflakes import MAX_ID
from chatstore.store import cassandra, counters, ledger
from chatstore.store.driver_errors import DeadlinePassed
from chatstore.store.messages import COLUMNS
from chatstore.store.reading.ledger_window import LedgerWindow
from chatstore.store.reading.widths import widths

_SELECT = (
    f"SELECT {', '.join(COLUMNS)} FROM messages "
    "WHERE channel_id = ? AND bucket = ? AND message_id >= ? AND message_id <= ? "
)
SELECT_DOWN = f"{_SELECT} ORDER BY message_id DESC LIMIT ?"
SELECT_UP = f"{_SELECT} ORDER BY message_id ASC LIMIT ?"

MAX_PIECES = 256
"""Maximum pieces of one bucket full of tombstones that a page prepares."""

_AUTHOR = COLUMNS.index("author_id")


@dataclass(frozen=True, slots=True)
class PendingSlice:
    """A slice with its request in flight, and the request's row limit."""

    slice: Slice
    pending: cassandra.Pending
    limit: int


class Search:
    """One search, from the near end of the ids `low` to `high` (inclusive) towards the far one.

    need: rows with an author after which it stops. deadline: `time.monotonic()`. max_requests: slices after which it
    requests no further wave. Results: `rows` in the direction of
    the search, hidden ones included; `is_whole`: whether everything in the interval was searched; `edge`: the farthest
    id searched.
    """

    def __init__(
        self,
        channel_id: int,
        *,
        low: int,
        high: int,
        descending: bool,
        need: int,
        deadline: float,
        max_requests: int | None = None,
    ) -> None:
        self.channel_id = channel_id
        self.rows: list[cassandra.Row] = []
        self.is_whole = False
        self.edge = high + 1 if descending else low - 1
        self.requested: list[tuple[Slice, int]] = []
        self._low, self._high = low, high
        self._descending = descending
        self._missing = need
        self._deadline = deadline
        self._max_requests = max_requests
        self._made_progress = False
        self._slices: deque[Slice] = deque()
        self._in_flight: deque[PendingSlice] = deque()
        self._guessed: PendingSlice | None = None
        self._empty: list[int] = []
        self._unknown_requested = self._unknown_found = 0
        self._max_unknown = 1

    @property
    def cql(self) -> str:
        """The statement of every slice: channel, bucket, low, high, limit."""
        return SELECT_DOWN if self._descending else SELECT_UP

    def run(self) -> None:
        """Search until enough rows are found, everything was searched, or the deadline passed."""
        self.start()
        self.finish()

    def start(self) -> None:
        """Send the first requests, so that those of several searches are in flight at the same time."""
        start = bucket_of(self._high if self._descending else self._low)
        if self._descending and self._high == MAX_ID:
            start = ledger.NEWEST_BUCKET
        self._window = LedgerWindow(self.channel_id, start=start, descending=self._descending)
        if self._window.is_ready:
            self._send_wave()
        else:
            self._send_guess()

    def finish(self) -> None:
        """Wait for the responses of a search that was started, and search on as `run` does."""
        if self._guessed is not None:
            self._refill()
            self._take_guess(self._guessed)
        while self._missing > 0:
            if not self._in_flight and self._has_requested_enough():
                break
            if not self._in_flight and not self._send_wave():
                self.is_whole = True
                break
            if self._is_late() or not self._take_one():
                counters.count(counters.LATE)
                break
        counters.count(counters.SKIPPED, self._count_skipped())

    def _count_skipped(self) -> int:
        if self.is_whole:
            return len(self._empty)
        end = bucket_of(self.edge)
        return sum(1 for bucket in self._empty if (bucket > end if self._descending else bucket < end))

    def _has_requested_enough(self) -> bool:
        return self._max_requests is not None and len(self.requested) >= self._max_requests

    def _is_late(self) -> bool:
        return self._made_progress and time.monotonic() > self._deadline

    # --- Requests

    def _submit(self, part: Slice, *, limit: int, waits_past_deadline: bool) -> PendingSlice:
        """Request a slice. With `waits_past_deadline` the response is awaited beyond the deadline."""
        self.requested.append((part, limit))
        left = None if waits_past_deadline else max(self._deadline - time.monotonic(), 0.05)
        params = (self.channel_id, part.bucket, part.low, part.high, limit)
        return PendingSlice(part, cassandra.submit(self.cql, params, timeout=left), limit)

    def _send_guess(self) -> None:
        """Request the slice that probably comes first, while the ledger is being read."""
        guess = self._guess()
        if guess is not None:
            self._guessed = self._submit(guess, limit=self._missing, waits_past_deadline=True)

    def _guess(self) -> Slice | None:
        seen = ledger.last_known_newest(self.channel_id)
        start = bucket_of(self._high if self._descending else self._low)
        if seen is not None and seen.rows and (seen.is_whole or start >= seen.rows[-1][0]):
            guesses = cut_slices(seen.rows, low=self._low, high=self._high)
            return self._narrow(guesses[0 if self._descending else -1])[0] if guesses else None
        now = bucket_at(time.time_ns() // 1_000_000)
        first, last = bucket_ids(min(now, start) if self._descending else start)
        return self._narrow(Slice(bucket_of(first), max(first, self._low), min(last, self._high)))[0]

    def _refill(self) -> None:
        """Queue further slices, as long as the ledger has any."""
        while not self._slices:
            rows = self._window.next_rows()
            if not rows:
                return
            self._empty += [bucket for bucket, live in rows if live.is_empty]
            for part in cut_slices(rows, low=self._low, high=self._high):
                self._slices.extend(self._narrow(part))

    def _narrow(self, part: Slice) -> list[Slice]:
        """Split a slice to the width that was readable in its bucket lately, the nearest part first."""
        width = widths.get(self.channel_id, part.bucket)
        if width is None:
            return [part]
        pieces = part.pieces(max(width, (part.high - part.low) // MAX_PIECES + 1))
        return pieces[::-1] if self._descending else pieces

    def _send_wave(self) -> bool:
        """Request the next few slices at once; return False if there are none."""
        self._refill()
        if not self._slices:
            return False
        guess = self._unknown_found // self._unknown_requested if self._unknown_requested else self._missing
        size = size_wave(
            [part.expected for part in self._slices],
            need=self._missing,
            guess=guess,
            max_unknown=self._max_unknown,
        )
        self._max_unknown = min(self._max_unknown * WAVE_GROWTH, MAX_CONCURRENT_SLICES)
        for number in range(size):
            waits_past_deadline = number == 0 and not self._made_progress
            self._in_flight.append(
                self._submit(self._slices.popleft(), limit=self._missing, waits_past_deadline=waits_past_deadline)
            )
        return True

    # --- Responses

    def _take_guess(self, guessed: PendingSlice) -> None:
        """Keep the slice requested beside the ledger if it is the near part of the first slice.

        A guess that reaches into deleted ids, by the ledger, may be slow or fail; its response is not awaited.
        """
        if not self._slices:
            return
        planned, requested = self._slices[0], guessed.slice
        is_near = requested.high == planned.high if self._descending else requested.low == planned.low
        if (
            requested.bucket != planned.bucket
            or not is_near
            or requested.low < planned.low
            or requested.high > planned.high
        ):
            return
        self._slices.popleft()
        rest = self._remainder(planned, requested.low - 1 if self._descending else requested.high + 1)
        if rest is not None:
            self._slices.appendleft(rest)
        self._in_flight.append(guessed)

    def _take_one(self) -> bool:
        """Process the nearest response; return False if the deadline passed while waiting for it."""
        requested = self._in_flight.popleft()
        try:
            rows = requested.pending.rows()
        except TooManyTombstones:
            if requested.slice.low >= requested.slice.high:
                raise
            counters.count(counters.ABORTED)
            lower, upper = requested.slice.halves()
            widths.note(self.channel_id, lower.bucket, lower.high - lower.low + 1)
            self._requeue(lower, upper)
            return True
        except DeadlinePassed:
            if not self._made_progress:
                raise
            return False
        self._take_rows(requested, rows)
        return True

    def _take_rows(self, requested: PendingSlice, rows: list[cassandra.Row]) -> None:
        self.rows += rows
        found = sum(1 for row in rows if row[_AUTHOR] is not None)
        self._missing -= found
        if requested.slice.expected is None:
            self._unknown_requested += 1
            self._unknown_found += len(rows)
        self._made_progress = True
        far = requested.slice.low if self._descending else requested.slice.high
        if len(rows) < requested.limit:
            self.edge = far
            return
        self.edge = rows[-1][0]
        rest = self._remainder(requested.slice, self.edge - 1 if self._descending else self.edge + 1)
        if rest is not None:
            self._requeue(rest)

    def _remainder(self, part: Slice, near: int) -> Slice | None:
        """Return the part of a slice beyond an id, which becomes its near end."""
        low, high = (part.low, near) if self._descending else (near, part.high)
        return Slice(part.bucket, low, high) if low <= high else None

    def _requeue(self, *parts: Slice) -> None:
        """Put slices in front of all others, after returning the slices in flight to the queue.

        The responses in flight are dropped; this happens only in buckets full of tombstones and with hidden rows.
        """
        while self._in_flight:
            self._slices.appendleft(self._in_flight.pop().slice)
        nearest_last = sorted(parts, key=lambda part: part.low, reverse=not self._descending)
        for part in nearest_last:
            self._slices.appendleft(part)
