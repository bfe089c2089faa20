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
keys = ("filename", "size", "url", "width", "height", "title", "description", "author", "fields", "name", "image")
objects = st.dictionaries(st.sampled_from(keys), anything, max_size=8)


@given(st.lists(objects.map(json.dumps) | st.text(max_size=20), max_size=4))
def test_any_stored_value_can_be_shown(kept: list[str]) -> None:
    for file in read_attachments(kept):
        assert file.name
        assert file.url == "" or file.url.startswith(("http://", "https://"))
        assert file.size is None or file.facts
    for embed in read_embeds(kept):
        assert not embed.is_empty
        assert embed.url == "" or embed.url.startswith(("http://", "https://"))
        assert embed.image_url == "" or embed.image_url.startswith(("http://", "https://"))
    assert all(read_stickers(kept))


def test_an_attachment_of_the_gateways_shape_and_of_the_exporters() -> None:
    gateway = json.dumps({"filename": "a.png", "size": 2048, "url": "https://f.example/a.png"})
    exporter = json.dumps({"fileName": "b.png", "fileSizeBytes": 3, "url": "javascript:alert(1)"})
    first, second = read_attachments([gateway, exporter])
    assert (first.name, first.facts, first.url) == ("a.png", "2.0 KiB", "https://f.example/a.png")
    assert (second.name, second.facts, second.url) == ("b.png", "3 bytes", "")


def test_an_image_has_its_dimensions_unless_they_are_absurd() -> None:
    sizes = [(1920, 1080), (0, 5), (10**9, 5), (True, True), ("5", 5), (None, 5)]
    kept = [json.dumps({"filename": "a.png", "size": 3, "width": w, "height": h}) for w, h in sizes]
    assert [file.facts for file in read_attachments(kept)] == ["3 bytes · 1,920 × 1,080", *["3 bytes"] * 5]


def test_an_embed_has_its_fields_its_footer_and_its_image() -> None:
    fields = [{"name": f"n{n}", "value": "v"} for n in range(40)]
    kept = json.dumps(
        {
            "fields": fields,
            "footer": {"text": "f"},
            "image": {"url": "data:x"},
            "thumbnail": {"url": "https://i.example/"},
        }
    )
    (embed,) = read_embeds([kept])
    assert len(embed.fields) == 25
    assert (embed.fields[0], embed.footer, embed.image_url) == (("n0", "v"), "f", "https://i.example/")


def test_sizes_are_formatted() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1024, 1536, 5 << 30)] == [
        "0 bytes",
        "1,023 bytes",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 GiB",
    ]
