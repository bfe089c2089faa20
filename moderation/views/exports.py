"""Lists as CSV and as JSON, written while they are read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from django.http import StreamingHttpResponse

ROWS_PER_CHUNK = 100
"""Rows that are sent together."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Characters at which a spreadsheet takes a cell for a formula; some read the wide ones of East Asia so, too."""

Cell = str | int | None

Row = TypeVar("Row")
Columns = Mapping[str, Callable[[Row], Any]]
"""What each column of a row contains, by the column's name. Names are an interface: scripts read them."""


def id_as_text(value: int | None) -> str | None:
    """Return an ID as text: it has more digits than a number in JavaScript."""
    return None if value is None else str(value)


def write_csv(columns: Columns[Row], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header; None is an empty cell, an object is JSON."""
    yield _lines([columns])
    cells = ([_cell(read(row)) for read in columns.values()] for row in rows)
    while some := list(islice(cells, ROWS_PER_CHUNK)):
        yield _lines(some)


def write_json(columns: Columns[Row], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON array of objects."""
    objects = (json.dumps({name: read(row) for name, read in columns.items()}) for row in rows)
    yield "["
    separator = "\n"
    while some := list(islice(objects, ROWS_PER_CHUNK)):
        yield separator + ",\n".join(some)
        separator = ",\n"
    yield "\n]\n"


def defuse(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def attach(content: Iterator[str] | Iterator[bytes], content_type: str, name: str) -> StreamingHttpResponse:
    """Return a file to download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(content, content_type=content_type, headers=headers)


def _cell(value: Any) -> Cell:
    return defuse(json.dumps(value, sort_keys=True) if isinstance(value, dict) else value)


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
