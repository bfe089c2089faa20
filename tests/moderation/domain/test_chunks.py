"""Quarantined rows are unpacked with every column equal."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from moderation.domain.chunks import BYTES_PER_CHUNK, ROW_COLUMNS, PackedRows, Row, decode_chunk, encode_chunks

int64 = st.integers(-(1 << 63), (1 << 63) - 1)
# Naive, like the times of the driver.
EARLIEST = dt.datetime.fromisoformat("2000-01-01")
LATEST = dt.datetime.fromisoformat("2100-01-01")
text = st.none() | st.text(max_size=40)
texts = st.none() | st.lists(st.text(max_size=20), min_size=1, max_size=3)
times = st.none() | st.datetimes(EARLIEST, LATEST).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)
rows = st.tuples(
    int64,
    st.none() | int64,
    st.none() | st.integers(0, 50),
    text,
    times,
    st.none() | st.integers(0, 1 << 30),
    st.none() | st.booleans(),
    st.none() | int64,
    text,
    texts,
    texts,
    texts,
    st.none() | st.dictionaries(st.text(max_size=5), st.integers(1, 9), min_size=1, max_size=3),
    st.none() | st.lists(int64, min_size=1, max_size=3),
    st.none() | st.tuples(int64, st.none() | int64),
)


def decoded(sent: list[Row]) -> list[Row]:
    return [row for _, body in encode_chunks(sent) for row in decode_chunk(body)]


@given(st.lists(rows, min_size=1, max_size=20))
def test_rows_are_unpacked_with_every_column_equal(sent: list[Row]) -> None:
    assert decoded(sent) == sent


@given(st.lists(st.tuples(rows, int64).map(lambda pair: (*pair[0], pair[1])), min_size=1, max_size=20))
def test_rows_are_unpacked_with_their_write_times(sent: list[Row]) -> None:
    assert decoded(sent) == sent


def test_rows_too_large_for_one_chunk_are_split() -> None:
    filler = "x" * (BYTES_PER_CHUNK // 3)
    sent = [(number, 1, 0, filler, *[None] * (len(ROW_COLUMNS) - 4)) for number in range(9)]
    parts = list(encode_chunks(sent))
    assert len(parts) > 3
    assert decoded(sent) == sent


def test_a_single_enormous_row_is_kept_whole() -> None:
    sent = [(1, 2, 0, "y" * (2 * BYTES_PER_CHUNK), *[None] * (len(ROW_COLUMNS) - 4))]
    assert decoded(sent) == sent


@given(st.lists(st.lists(rows, max_size=5), max_size=5))
def test_rows_packed_in_memory_are_unpacked_as_added(pages: list[list[Row]]) -> None:
    packed = PackedRows(1 << 20)
    for page in pages:
        packed.add(page)
    assert packed.is_whole
    assert [row for page in packed for row in page] == [row for page in pages for row in page]


def test_rows_over_the_memory_limit_are_dropped_for_good() -> None:
    page = [(message_id, *(None,) * (len(ROW_COLUMNS) - 1)) for message_id in range(2_500)]
    packed = PackedRows(1_000)
    packed.add(page[:10])
    assert 0 < packed.size <= 1_000
    packed.add(page)
    packed.add(page[:1])
    assert (packed.is_whole, packed.size, list(packed)) == (False, 0, [])
