"""Ten-day buckets, before and after 2015."""

import datetime as dt
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import (
    BUCKET_MS,
    SEAL_AFTER_MS,
    bucket_at,
    bucket_ids,
    bucket_of,
    bucket_window,
    is_sealed,
    join_keys,
)
from chatstore.domain.snowflakes import EPOCH_MS, MAX_ID, MIN_ID, first_id_at, ms_of

IDS = st.integers(MIN_ID, MAX_ID)
BUCKETS = st.integers(bucket_of(MIN_ID) + 1, bucket_of(MAX_ID) - 1)
EPOCH = dt.datetime(2015, 1, 1, tzinfo=dt.UTC)


@given(message_id=IDS)
def test_a_bucket_is_the_floor_of_ten_days_since_2015(message_id: int) -> None:
    assert bucket_of(message_id) == (ms_of(message_id) - 1_420_070_400_000) // 864_000_000
    assert bucket_of(message_id) == bucket_at(ms_of(message_id))


@given(bucket=BUCKETS)
def test_the_ids_of_a_bucket_are_its_own_and_no_others(bucket: int) -> None:
    first, last = bucket_ids(bucket)
    assert bucket_of(first) == bucket_of(last) == bucket
    assert bucket_of(first - 1) == bucket - 1
    assert bucket_of(last + 1) == bucket + 1


@given(bucket=st.integers(-1000, 1000))
def test_windows_of_buckets_meet(bucket: int) -> None:
    begins, ends = bucket_window(bucket)
    assert begins == EPOCH + bucket * dt.timedelta(days=10)
    assert ends == bucket_window(bucket + 1)[0]


def test_the_last_millisecond_before_2015_is_in_bucket_minus_one() -> None:
    assert bucket_of(first_id_at(EPOCH_MS)) == 0
    assert bucket_of(first_id_at(EPOCH_MS) - 1) == -1


@given(bucket=st.integers(-1000, 1000), after_end=st.integers(-(10**9), 10**9))
def test_a_bucket_is_sealed_once_its_window_ended_over_an_hour_ago(bucket: int, after_end: int) -> None:
    ends_ms = EPOCH_MS + (bucket + 1) * BUCKET_MS
    assert is_sealed(bucket, now_ms=ends_ms + after_end) == (after_end > SEAL_AFTER_MS)


def test_the_outermost_buckets_end_where_64_bits_do() -> None:
    assert bucket_ids(bucket_of(MIN_ID))[0] == MIN_ID
    assert bucket_ids(bucket_of(MAX_ID))[1] == MAX_ID


@given(st.dictionaries(st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(1, 9)), st.integers(1, 12))
def test_each_bucket_is_in_one_statement_of_limited_size(sizes: dict[tuple[int, int], int], limit: int) -> None:
    joined = [list(product(channel_ids, buckets)) for channel_ids, buckets in join_keys(sizes, limit=limit)]
    assert sorted(key for keys in joined for key in keys) == sorted(sizes)
    assert all(len(keys) == 1 or sum(sizes[key] for key in keys) <= limit for keys in joined)
