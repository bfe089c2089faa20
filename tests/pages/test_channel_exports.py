"""Exports of the table of all channels are exact, harmless in a spreadsheet, and written while they are read."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Iterator

import pytest

from chatstore.domain.health import ChannelState
from chatstore.domain.runs import Severity
from chatstore.models import Channel, ChannelSummary, Guild
from chatstore.operations.health.channel_list import ListedChannel
from chatstore.operations.health.summaries import known_of
from moderation.views.channel_exports import COLUMNS, as_csv, as_json
from moderation.views.exports import ROWS_PER_CHUNK, defuse

pytestmark = pytest.mark.unit

AT = dt.datetime(2026, 11, 23, 7, 24, tzinfo=dt.UTC)
LARGE = 9_007_199_254_740_993
"""A number that a float cannot hold."""


def listed(name: str = "general", **figures: int | dt.datetime) -> ListedChannel:
    channel = Channel(pk=LARGE, name=name, guild=Guild(pk=7, name="=Harbour"))
    row = ChannelSummary(channel=channel, **figures)
    return ListedChannel(row, known_of(row), ChannelState.TOMBSTONES, Severity.CRITICAL)


def test_json_has_exact_numbers_ids_as_text_and_null_for_unknown() -> None:
    text = "".join(as_json([listed(bytes=LARGE, bytes_at=AT, last_purge_id=LARGE), listed()]))
    first, second = json.loads(text)
    assert list(first) == list(COLUMNS)
    assert (first["channel_id"], first["last_purge"], first["bytes"]) == (str(LARGE), str(LARGE), LARGE)
    assert (first["state"], first["severity"], first["guild"]) == ("tombstones", "critical", "=Harbour")
    assert first["bytes_measured_at"] == "2026-11-23T07:24:00+00:00"
    assert (first["tombstones"], second["bytes"], second["last_purged_at"]) == (None, None, None)


def test_an_export_without_channels_is_valid() -> None:
    assert json.loads("".join(as_json([]))) == []
    assert list(csv.reader(as_csv([]))) == [list(COLUMNS)]


def test_csv_has_a_header_and_empty_cells_for_unknown_figures() -> None:
    (row,) = csv.DictReader("".join(as_csv([listed(tombstones=0)])).splitlines())
    assert list(row) == list(COLUMNS)
    assert (row["tombstones"], row["bytes"], row["channel"]) == ("0", "", "general")
    assert row["guild"] == "'=Harbour"


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_name_is_a_formula(first: str) -> None:
    assert defuse(f"{first}1+1") == f"'{first}1+1"


def test_numbers_and_other_names_are_left_alone() -> None:
    assert [defuse(one) for one in (-1, None, "a=b", "", "#general")] == [-1, None, "a=b", "", "#general"]


@pytest.mark.parametrize("write", [as_csv, as_json])
def test_rows_are_written_while_others_are_not_read_yet(write: object) -> None:
    read = 0

    def channels() -> Iterator[ListedChannel]:
        nonlocal read
        for _ in range(3 * ROWS_PER_CHUNK):
            read += 1
            yield listed()

    assert callable(write)
    chunks = write(channels())
    next(chunks)
    next(chunks)
    assert read <= ROWS_PER_CHUNK + 1
