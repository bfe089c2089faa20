"""JSON read in parts of any size equals what the standard library reads; a broken value affects only itself."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain import json_stream
from chatstore.domain.json_stream import BrokenJson, JsonStream, Unreadable

LIMIT = 1_000

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def read_items(content: bytes, *, part: int = 1 << 16, limit: int = LIMIT) -> list[Any]:
    """Parse an array while `read` returns `part` bytes at a time; return its items."""
    file = io.BytesIO(content)
    return list(JsonStream(lambda size: file.read(min(size, part)), limit=limit).items())


@pytest.mark.parametrize("number", [0.0, -1.5, 1e20, -2.5e-7, 10, 123456])
def test_a_number_that_is_read_in_parts_is_one_number(number: float) -> None:
    content = json.dumps([False, number, number]).encode()
    for part in range(1, len(content)):
        assert read_items(content, part=part, limit=1_000) == [False, number, number]


@given(st.lists(values), st.sampled_from([1, 2, 3, 7, 64]), st.sampled_from([None, 2]), st.booleans())
def test_items_are_what_the_standard_library_reads(
    items: list[Any], part: int, indent: int | None, ensure_ascii: bool
) -> None:
    content = json.dumps(items, indent=indent, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")
    if "\\ud" in content.decode("utf-8", "replace") or not ensure_ascii:
        content = json.dumps(items, indent=indent).encode()
    assert read_items(content, part=part, limit=1_000_000) == items


@given(st.lists(values, max_size=4), st.lists(values, max_size=4), st.sampled_from([997, 1 << 16]))
def test_an_unreadable_item_costs_only_itself(before: list[Any], after: list[Any], part: int) -> None:
    for bad in (
        '{"a": ' + "9" * 6_000 + "}",
        "9" * 6_000,
        "{\"a\" 'b'}",
        '{"a": 1e999}',
        "[NaN]",
        "[" * 3_000 + "]" * 3_000,
    ):
        texts = [*map(json.dumps, before), bad, *map(json.dumps, after)]
        found = read_items(f"[{', '.join(texts)}]".encode(), part=part, limit=100_000)
        assert found[: len(before)] == before
        assert isinstance(found[len(before)], Unreadable), bad[:20]
        assert found[len(before) + 1 :] == after


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("9" * 6_000, "a number of 6,000 digits"),
        ("[" * 3_000 + "]" * 3_000, "nested too deeply"),
        ("1e999", "too large"),
        ("-Infinity", "-Infinity"),
        ('"' + "x" * 60_000 + '"', "more than 50,000 characters"),
        ('{"a": tru}', "Expecting value"),
    ],
)
def test_the_reason_is_reported(bad: str, reason: str) -> None:
    [found, last] = read_items(f"[{bad}, 1]".encode(), limit=50_000)
    assert isinstance(found, Unreadable)
    assert reason in found.reason
    assert last == 1


def test_a_value_over_the_limit_is_never_kept_in_memory() -> None:
    parts = iter([b'[1, {"a": "', *[b'["\\\\"\\"x{' * 100_000] * 8, b'"}, 2]'])
    stream = JsonStream(lambda size: next(parts, b""), limit=LIMIT)
    buffered = 0
    found = []
    for item in stream.items():
        found.append(item)
        buffered = max(buffered, len(stream._text))
    assert found[::2] == [1, 2]
    assert isinstance(found[1], Unreadable)
    assert buffered < 2_000_000


def test_input_crafted_to_fill_memory_is_refused() -> None:
    nested = b"[" + b"[]," * 1_000_000 + b"0]"
    [found] = read_items(b"[" + nested + b"]", limit=10_000_000)
    assert isinstance(found, Unreadable)
    assert "lists and objects" in found.reason


@pytest.mark.parametrize("cut", [b"[", b"[1", b"[1,", b'[{"a": "b', b'["\\', b"[1, [2, [3"])
def test_a_text_that_ends_too_early_is_broken(cut: bytes) -> None:
    with pytest.raises(BrokenJson, match="unexpected end of file"):
        read_items(cut)


@pytest.mark.parametrize("odd", [b"[1 2]", b"[1}", b"[1,, 2]x", b'[{"a": 1]}', b"[}"])
def test_brackets_that_do_not_match_are_broken(odd: bytes) -> None:
    try:
        found = read_items(odd)
    except BrokenJson:
        return
    assert any(isinstance(item, Unreadable) for item in found)


def test_keys_precede_their_values() -> None:
    stream = JsonStream(io.BytesIO(b'\xef\xbb\xbf {"a": [1, {"b": "]}"}], "c": 2, "d": {}}').read, limit=LIMIT)
    found = {}
    for key in stream.members():
        if key == "a":
            stream.skip()
        else:
            found[key] = stream.value()
    assert found == {"c": 2, "d": {}}


def test_invalid_bytes_affect_only_their_text() -> None:
    [first, second] = read_items(b'["a\xff\xfeb", "good"]')
    assert first == "a\udcff\udcfeb"
    assert second == "good"


@pytest.mark.parametrize("part", [1, 3, 1 << 16])
def test_the_position_is_the_byte_at_which_a_value_begins(part: int) -> None:
    content = '["é", {"a": "ü€"},\n  12, "last"]'.encode()
    file = io.BytesIO(content)
    stream = JsonStream(lambda size: file.read(min(size, part)), limit=LIMIT)
    positions = [stream.position for _ in stream.items()]
    assert positions == [content.index(text) for text in (b'"\xc3\xa9"', b"{", b"12", b'"last"')]


def test_a_large_value_is_read_whole() -> None:
    large = {"text": 'é\\"' * json_stream.BUFFER_BYTES, "more": list(range(1_000))}
    assert read_items(json.dumps([large, 5], ensure_ascii=False).encode(), limit=1 << 24) == [large, 5]
