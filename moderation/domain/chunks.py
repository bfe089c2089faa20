"""Serialization of message rows, for the quarantine and for memory: by column, as JSON, compressed with zstd.

A chunk contains at most `ROWS_PER_CHUNK` rows and `BYTES_PER_CHUNK` of JSON. Columns that no row of the chunk sets
are left out, so an average row costs its text and little more. Times are Unix milliseconds, the precision that
Cassandra stores.
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
"""Column of row-delete steps: each row's newest WRITETIME, µs."""

Row = tuple[Any, ...]
"""Values in the order of `ROW_COLUMNS`, optionally followed by the row's newest WRITETIME."""


def writetime_of(row: Row) -> int | None:
    """Return a row's newest WRITETIME (µs), or None if it was quarantined without one."""
    return row[len(ROW_COLUMNS)] if len(row) > len(ROW_COLUMNS) else None


def with_writetime(row: Row) -> Row:
    """Pad the row to the width of rows with a WRITETIME, so that both kinds fit into one chunk."""
    return row if len(row) > len(ROW_COLUMNS) else (*row, None)


# Naive, as the driver returns and expects times.
_UNIX = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_MILLISECOND = dt.timedelta(milliseconds=1)
_EDITED_AT = "edited_at"
_REFERENCE = "reference"


def encode_chunks(rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], bytes]]:
    """Split up to `ROWS_PER_CHUNK` rows into chunks within the size limit; yield each chunk's rows and bytes."""
    text = _to_json(rows)
    if len(text) > BYTES_PER_CHUNK and len(rows) > 1:
        middle = len(rows) // 2
        yield from encode_chunks(rows[:middle])
        yield from encode_chunks(rows[middle:])
    else:
        yield rows, zstandard.compress(text, 3)


def decode_chunk(body: bytes) -> list[Row]:
    """Return the rows of a chunk, as they were encoded."""
    columns: dict[str, list[Any]] = json.loads(zstandard.decompress(body))
    if _EDITED_AT in columns:
        columns[_EDITED_AT] = [_from_ms(value) for value in columns[_EDITED_AT]]
    if _REFERENCE in columns:
        columns[_REFERENCE] = [None if value is None else tuple(value) for value in columns[_REFERENCE]]
    names = (*ROW_COLUMNS, WRITETIME) if WRITETIME in columns else ROW_COLUMNS
    return list(zip(*(columns.get(name, repeat(None)) for name in names), strict=False))


class PackedRows:
    """Rows buffered in memory as chunks. Once they exceed the limit, the buffer drops all of them.

    max_bytes: the limit. size: bytes in use. is_whole: False after the buffer was dropped.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._chunks: list[bytes] = []
        self.size = 0
        self.is_whole = True

    def add(self, rows: Sequence[Row]) -> None:
        """Add any number of rows; no effect once the buffer was dropped."""
        for start in range(0, len(rows) if self.is_whole else 0, ROWS_PER_CHUNK):
            for _, body in encode_chunks(rows[start : start + ROWS_PER_CHUNK]):
                self._chunks.append(body)
                self.size += len(body)
        if self.size > self._max_bytes:
            self._chunks.clear()
            self.size, self.is_whole = 0, False

    def __iter__(self) -> Iterator[list[Row]]:
        """Iterate over the rows in the order they were added, up to `ROWS_PER_CHUNK` at a time."""
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
    # The driver has its own map and list types.
    return dict(value) if hasattr(value, "items") else list(value)


def _to_ms(value: dt.datetime | None) -> int | None:
    return None if value is None else (value - _UNIX) // _MILLISECOND


def _from_ms(value: int | None) -> dt.datetime | None:
    return None if value is None else _UNIX + value * _MILLISECOND
