"""Rows as bytes, in the quarantine and in memory: by column, JSON, zstd.

A chunk holds at most `ROWS_PER_CHUNK` rows and `BYTES_PER_CHUNK` of JSON. Columns that no
row of the chunk has set are left out, so an average row costs its text and little more.
Times are Unix milliseconds, as exact as Cassandra keeps them.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import zstandard

from chatstore.domain.messages import VALUE_COLUMNS

ROWS_PER_CHUNK = 1_000
BYTES_PER_CHUNK = 1 << 20
ROW_COLUMNS = ("message_id", *VALUE_COLUMNS)
WRITETIME = "writetime"
"""The column of rows steps: each row's newest WRITETIME, µs."""

Row = tuple[Any, ...]
"""Values in the order of `ROW_COLUMNS`, with the row's newest WRITETIME behind them or not."""


def writetime_of(row: Row) -> int | None:
    """A row's newest WRITETIME (µs), where it was kept with one."""
    return row[len(ROW_COLUMNS)] if len(row) > len(ROW_COLUMNS) else None


def with_writetime(row: Row) -> Row:
    """The row as wide as those that have a WRITETIME, so that both kinds go into one chunk."""
    return row if len(row) > len(ROW_COLUMNS) else (*row, None)


# Naive, as the driver gives and takes times.
_UNIX = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_MILLISECOND = dt.timedelta(milliseconds=1)
_EDITED_AT = "edited_at"
_REFERENCE = "reference"


def encode_chunks(rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], bytes]]:
    """Up to `ROWS_PER_CHUNK` rows as chunks that are small enough, each with its rows."""
    text = _to_json(rows)
    if len(text) > BYTES_PER_CHUNK and len(rows) > 1:
        middle = len(rows) // 2
        yield from encode_chunks(rows[:middle])
        yield from encode_chunks(rows[middle:])
    else:
        yield rows, zstandard.compress(text, 3)


def decode_chunk(body: bytes) -> list[Row]:
    """The rows of a chunk, as they went in."""
    columns: dict[str, list[Any]] = json.loads(zstandard.decompress(body))
    if _EDITED_AT in columns:
        columns[_EDITED_AT] = [_from_ms(value) for value in columns[_EDITED_AT]]
    if _REFERENCE in columns:
        columns[_REFERENCE] = [None if value is None else tuple(value) for value in columns[_REFERENCE]]
    names = (*ROW_COLUMNS, WRITETIME) if WRITETIME in columns else ROW_COLUMNS
    return list(zip(*(columns.get(name, repeat(None)) for name in names), strict=False))


class PackedRows:
    """Rows that wait in memory as chunks: all that were added, or none of them once they are too large.

    at_most: bytes. size: bytes that it holds.
    """

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._chunks: list[bytes] = []
        self.size = 0
        self.is_whole = True

    def add(self, rows: Sequence[Row]) -> None:
        """Adds any number of rows; without effect once it has let go."""
        for start in range(0, len(rows) if self.is_whole else 0, ROWS_PER_CHUNK):
            for _, body in encode_chunks(rows[start : start + ROWS_PER_CHUNK]):
                self._chunks.append(body)
                self.size += len(body)
        if self.size > self._at_most:
            self._chunks.clear()
            self.size, self.is_whole = 0, False

    def __iter__(self) -> Iterator[list[Row]]:
        """The rows as they were added, up to `ROWS_PER_CHUNK` at a time."""
        return map(decode_chunk, self._chunks)


def _to_json(rows: Sequence[Row]) -> bytes:
    columns = {
        name: values
        for name, values in zip((*ROW_COLUMNS, WRITETIME), zip(*rows, strict=True), strict=False)
        if values.count(None) != len(values)
    }
    if _EDITED_AT in columns:
        columns[_EDITED_AT] = tuple(_to_ms(value) for value in columns[_EDITED_AT])
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":"), default=_to_plain).encode()


def _to_plain(value: Any) -> Any:
    # The driver's own kinds of map and list.
    return dict(value) if hasattr(value, "items") else list(value)


def _to_ms(value: dt.datetime | None) -> int | None:
    return None if value is None else (value - _UNIX) // _MILLISECOND


def _from_ms(value: int | None) -> dt.datetime | None:
    return None if value is None else _UNIX + value * _MILLISECOND
