"""Snowflakes: 64-bit ids that carry their time.

`(Unix ms - 1420070400000) << 22 | worker << 12 | sequence`, Discord's format (10 bits of worker: Discord's five of
worker and five of process together). Ids before 2015 are negative; nothing here assumes otherwise.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from dataclasses import dataclass

from chatstore.domain.errors import BadInput, WriteRefused
from chatstore.domain.texts import gettext_lazy as _

EPOCH_MS = 1_420_070_400_000
"""2015-01-01T00:00Z in Unix milliseconds, Discord's epoch."""

TIME_SHIFT = 22
WORKER_SHIFT = 12
WORKERS = 1 << 10
SEQUENCES = 1 << 12
MIN_ID = -(1 << 63)
MAX_ID = (1 << 63) - 1

MAX_CLOCK_BACKSTEP_MS = 5_000
"""A clock that stepped back further raises an error instead of being waited for."""

_UNIX = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Snowflake:
    """What a snowflake carries. ms: Unix milliseconds; sequence: Discord calls it the increment."""

    ms: int
    worker: int
    sequence: int

    @property
    def time(self) -> dt.datetime:
        """UTC datetime, to the millisecond."""
        return _UNIX + self.ms * _MILLISECOND


def decode_snowflake(snowflake: int) -> Snowflake:
    """Return what an id carries. Any 64-bit number can be decoded, whether it is a snowflake or not."""
    return Snowflake(
        ms=ms_of(snowflake), worker=snowflake >> WORKER_SHIFT & WORKERS - 1, sequence=snowflake & SEQUENCES - 1
    )


def unix_ms(when: dt.datetime) -> int:
    """Return whole Unix milliseconds of an aware datetime, floored."""
    return (when - _UNIX) // _MILLISECOND


def ms_of(snowflake: int) -> int:
    """Return the Unix milliseconds that an id carries."""
    return (snowflake >> TIME_SHIFT) + EPOCH_MS


def time_of(snowflake: int) -> dt.datetime:
    """Return the UTC datetime that an id carries, to the millisecond."""
    return _UNIX + ms_of(snowflake) * _MILLISECOND


def first_id_at(ms: int) -> int:
    """Return the lowest id of a Unix millisecond: every lower id is older."""
    return (ms - EPOCH_MS) << TIME_SHIFT


def make_snowflake(ms: int, *, worker: int = 0, sequence: int = 0) -> int:
    """Return the id of a Unix millisecond, a worker (10 bits) and a sequence number (12 bits)."""
    if not 0 <= worker < WORKERS:
        raise ValueError(f"worker {worker} is outside 0..{WORKERS - 1}")
    if not 0 <= sequence < SEQUENCES:
        raise ValueError(f"sequence {sequence} is outside 0..{SEQUENCES - 1}")
    return first_id_at(ms) | worker << WORKER_SHIFT | sequence


def parse_snowflake(text: object) -> int:
    """Parse an id from user input or a file: an int or a decimal string.

    Raises `BadInput` for anything but a 64-bit signed integer.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        value = text
    elif isinstance(text, str) and text.isascii() and text.strip().lstrip("-").isdigit() and len(text) <= 24:
        try:
            value = int(text)
        except ValueError:
            raise BadInput(_("“%(text)s” is not an ID", text=text)) from None
    else:
        shown = text if isinstance(text, str) and len(text) <= 40 else type(text).__name__
        raise BadInput(_("“%(text)s” is not an ID: IDs are whole numbers", text=shown))
    if not MIN_ID <= value <= MAX_ID:
        raise BadInput(_("%(id)s is not an ID: it does not fit 64 bits", id=str(value)))
    return value


class SnowflakeMaker:
    """Generator of ids for one leased worker number: unique and ascending.

    `clock` returns Unix milliseconds. If the clock steps back a little, the last millisecond is kept and its sequence
    used up; a step of more than `MAX_CLOCK_BACKSTEP_MS` raises `WriteRefused`. When all 4,096 ids of a millisecond are
    used, the next millisecond is borrowed, at most that limit ahead of the clock.
    """

    def __init__(self, worker: int, *, clock: Callable[[], int]) -> None:
        make_snowflake(EPOCH_MS, worker=worker)
        self._worker = worker
        self._clock = clock
        self._last_ms: int | None = None
        self._sequence = 0
        self._lock = threading.Lock()

    def make(self) -> int:
        """Return a new id, greater than all earlier ones of this generator."""
        with self._lock:
            now = self._clock()
            if self._last_ms is None or now > self._last_ms:
                self._last_ms, self._sequence = now, 0
            else:
                self._advance(now, self._last_ms)
            return make_snowflake(self._last_ms, worker=self._worker, sequence=self._sequence)

    def _advance(self, now: int, last_ms: int) -> None:
        if last_ms - now > MAX_CLOCK_BACKSTEP_MS:
            raise WriteRefused(
                _(
                    "The clock of this machine went back by %(count)s ms; new IDs could repeat old ones.",
                    count=last_ms - now,
                )
            )
        self._sequence += 1
        if self._sequence == SEQUENCES:
            self._last_ms, self._sequence = last_ms + 1, 0
