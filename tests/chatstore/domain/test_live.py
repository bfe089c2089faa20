"""Live bounds: ids outside of them are certainly deleted, and stored bounds can be loaded again."""

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.live import EMPTY, UNKNOWN, Live, live_from_read

SMALL = st.integers(-50, 50)


@st.composite
def lives(draw: st.DrawFn) -> Live:
    first, last = sorted((draw(SMALL), draw(SMALL)))
    return draw(st.sampled_from([UNKNOWN, EMPTY, Live(first, None, None), Live(first, last, last - first + 1)]))


def may_live(live: Live, message_id: int) -> bool:
    """Return whether the table in `live.py` allows the id to be live: the oracle."""
    match live.as_tuple():
        case (1, 0, 0):
            return False
        case (None, None, None):
            return True
        case (int() as first, None, None):
            return message_id >= first
        case (int() as first, int() as last, _):
            return first <= message_id <= last
    raise AssertionError(live)


@given(live=lives(), one=SMALL, other=SMALL)
def test_clipping_keeps_exactly_the_ids_that_may_live(live: Live, one: int, other: int) -> None:
    low, high = sorted((one, other))
    clipped = live.clip(low, high)
    kept = set() if clipped is None else set(range(clipped[0], clipped[1] + 1))
    assert kept == {message_id for message_id in range(low, high + 1) if may_live(live, message_id)}


@given(live=lives())
def test_a_stored_value_is_loaded_unchanged(live: Live) -> None:
    assert Live.from_tuple(live.as_tuple()) == live


def test_an_unset_and_a_cleared_column_both_mean_unknown() -> None:
    assert Live.from_tuple(None) == Live.from_tuple((None, None, None)) == UNKNOWN
    assert not UNKNOWN.is_known
    assert not UNKNOWN.is_empty


def test_an_empty_bucket_is_stored_as_an_empty_interval() -> None:
    assert EMPTY.as_tuple() == (1, 0, 0)
    assert EMPTY.is_known
    assert EMPTY.is_empty


@given(ids=st.sets(SMALL), settled_before=SMALL)
def test_a_sealed_bucket_gets_all_bounds_and_an_open_one_only_the_lower(ids: set[int], settled_before: int) -> None:
    lowest, highest = min(ids, default=None), max(ids, default=None)
    sealed = live_from_read(lowest, highest, len(ids), sealed=True, settled_before=settled_before)
    assert sealed == (Live(lowest, highest, len(ids)) if ids else EMPTY)
    still_open = live_from_read(lowest, highest, len(ids), sealed=False, settled_before=settled_before)
    assert still_open == Live(min(ids | {settled_before}), None, None)
    assert all(may_live(still_open, message_id) for message_id in ids)
    assert not still_open.is_known
