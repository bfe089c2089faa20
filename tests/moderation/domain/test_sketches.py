"""A sketch never denies an id that it was built from, and denies most others."""

from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, make_snowflake
from moderation.domain.packing import unpack_ids
from moderation.domain.sketches import may_contain, sketch_ids, step_columns

MARCH_2024_MS = 1_710_000_000_000

ids = st.lists(st.integers(MIN_ID, MAX_ID), unique=True, max_size=60).map(sorted)


@given(ids)
def test_no_id_of_the_set_is_ever_denied(chosen: list[int]) -> None:
    sketch = sketch_ids(chosen)
    assert len(sketch) == len(chosen)
    assert all(may_contain(sketch, message_id) for message_id in chosen)


def test_seven_of_eight_foreign_ids_are_denied_at_any_spacing() -> None:
    for apart_ms in (1, 1_000, 172_800, 1 << 18):
        chosen = [make_snowflake(MARCH_2024_MS + 2 * apart_ms * n) for n in range(5_000)]
        foreign = [make_snowflake(MARCH_2024_MS + 2 * apart_ms * n + apart_ms, sequence=n % 7) for n in range(5_000)]
        sketch = sketch_ids(chosen)
        mistaken = sum(may_contain(sketch, message_id) for message_id in foreign)
        assert mistaken < 5_000 * 0.2, apart_ms


def test_an_empty_sketch_matches_nothing() -> None:
    assert not may_contain(sketch_ids([]), 7)


@given(st.lists(st.integers(*bucket_ids(-3)), unique=True, max_size=60).map(sorted))
def test_the_id_columns_of_a_step_list_its_ids(chosen: list[int]) -> None:
    columns = step_columns(chosen)
    assert unpack_ids(columns["ids"]) == chosen
    assert columns["count"] == len(chosen)
    assert (columns["first_id"], columns["last_id"]) == ((chosen[0], chosen[-1]) if chosen else (None, None))
