"""Attachments, embeds and stickers from stored JSON: any part may be missing or of the wrong type."""

import json

from hypothesis import given
from hypothesis import strategies as st

from moderation.presentation.extras import format_bytes, read_attachments, read_embeds, read_stickers

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
keys = ("filename", "size", "url", "title", "description", "author", "fields", "name")
objects = st.dictionaries(st.sampled_from(keys), anything, max_size=8)


@given(st.lists(objects.map(json.dumps) | st.text(max_size=20), max_size=4))
def test_any_stored_value_can_be_shown(kept: list[str]) -> None:
    for file in read_attachments(kept):
        assert file.name
        assert file.url == "" or file.url.startswith(("http://", "https://"))
        assert file.size is None or file.formatted_size
    for embed in read_embeds(kept):
        assert not embed.is_empty
        assert embed.url == "" or embed.url.startswith(("http://", "https://"))
    assert all(read_stickers(kept))


def test_an_attachment_of_the_gateways_shape_and_of_the_exporters() -> None:
    gateway = json.dumps({"filename": "a.png", "size": 2048, "url": "https://f.example/a.png"})
    exporter = json.dumps({"fileName": "b.png", "fileSizeBytes": 3, "url": "javascript:alert(1)"})
    first, second = read_attachments([gateway, exporter])
    assert (first.name, first.formatted_size, first.url) == ("a.png", "2.0 KiB", "https://f.example/a.png")
    assert (second.name, second.formatted_size, second.url) == ("b.png", "3 bytes", "")


def test_sizes_are_formatted() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1024, 1536, 5 << 30)] == [
        "0 bytes",
        "1,023 bytes",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 GiB",
    ]
