"""The slices a page reads: every id that may be live, no deleted range, and not too much at once."""

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.slices import MAX_CONCURRENT_SLICES, Slice, cut_slices, fill_gaps, size_wave

FIRST, LAST = bucket_ids(3)


def test_an_unknown_bucket_is_read_completely() -> None:
    assert cut_slices([(3, UNKNOWN)], low=-(2**63), high=2**63 - 1) == [Slice(3, FIRST, LAST)]


def test_empty_buckets_are_skipped_and_others_read_between_their_live_ids() -> None:
    rows = [(4, EMPTY), (3, Live(FIRST + 10, FIRST + 109, 50)), (2, Live(0, None, None))]
    low = bucket_ids(2)[1] - 5
    assert cut_slices(rows, low=low, high=2**63 - 1) == [
        Slice(3, FIRST + 10, FIRST + 109, 50),
        Slice(2, low, FIRST - 1, None),
    ]


def test_a_part_of_a_known_bucket_is_expected_to_contain_its_share() -> None:
    rows = [(3, Live(FIRST, FIRST + 99, 40))]
    assert cut_slices(rows, low=FIRST + 50, high=LAST) == [Slice(3, FIRST + 50, FIRST + 99, 20)]


def test_buckets_outside_the_interval_are_not_read() -> None:
    assert cut_slices([(4, UNKNOWN), (2, UNKNOWN)], low=FIRST, high=LAST) == []


@given(
    rows=st.dictionaries(st.integers(-5, 5), st.sampled_from([UNKNOWN, EMPTY]), max_size=8),
    oldest=st.integers(-6, 6),
    newest=st.integers(-6, 6),
)
def test_gaps_are_filled_with_unknown_and_rows_are_kept(rows: dict[int, Live], oldest: int, newest: int) -> None:
    ledger = sorted(rows.items(), reverse=True)
    filled = fill_gaps(ledger, oldest=oldest, newest=newest)
    expected = dict.fromkeys(range(oldest, newest + 1), UNKNOWN) | rows
    assert filled == sorted(expected.items(), key=lambda row: row[0], reverse=True)


@given(low=st.integers(-100, 100), width=st.integers(1, 100))
def test_halves_of_a_slice_meet_and_cover_it(low: int, width: int) -> None:
    lower, upper = Slice(1, low, low + width, 7).halves()
    assert (lower.low, upper.high) == (low, low + width)
    assert lower.high + 1 == upper.low
    assert lower.low <= lower.high
    assert upper.low <= upper.high


@given(low=st.integers(-100, 100), ids=st.integers(1, 100), width=st.integers(1, 120))
def test_pieces_of_a_slice_meet_and_cover_it_and_none_is_too_wide(low: int, ids: int, width: int) -> None:
    pieces = Slice(1, low, low + ids - 1).pieces(width)
    assert [one for piece in pieces for one in range(piece.low, piece.high + 1)] == list(range(low, low + ids))
    assert max(piece.high - piece.low + 1 for piece in pieces) <= width


@given(
    expected=st.lists(st.none() | st.integers(0, 60), min_size=1, max_size=60),
    need=st.integers(1, 60),
    guess=st.integers(0, 60),
    max_unknown=st.integers(1, 32),
)
def test_a_wave_is_the_shortest_sufficient_one(
    expected: list[int | None], need: int, guess: int, max_unknown: int
) -> None:
    size = size_wave(expected, need=need, guess=guess, max_unknown=max_unknown)
    assert 1 <= size <= min(len(expected), MAX_CONCURRENT_SLICES)
    wave = expected[:size]
    assert wave.count(None) <= max_unknown

    def total(rows: list[int | None]) -> int:
        return sum(guess if row is None else row for row in rows)

    assert total(wave[:-1]) < need
    if total(wave) < need and size < min(len(expected), MAX_CONCURRENT_SLICES):
        assert expected[size] is None
        assert wave.count(None) == max_unknown


def test_with_unknown_buckets_the_waves_start_with_one_bucket() -> None:
    assert size_wave([None] * 40, need=51, guess=51, max_unknown=1) == 1
    assert size_wave([None] * 40, need=51, guess=0, max_unknown=16) == 16
