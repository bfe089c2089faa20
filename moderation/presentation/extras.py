"""Attachments, embeds and stickers of a message, parsed from the JSON they are stored as.

They are untrusted: every field may be missing or of another type, and a URL may be anything.
Only http and https URLs become links, with active characters percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from chatstore.domain.controls import make_inert
from chatstore.domain.discord_shapes import WHITE, read_objects
from chatstore.domain.snowflakes import MAX_ID
from moderation.presentation import formats

MAX_FIELDS = 25
"""Fields of an embed that are shown: as many as Discord allows."""

MAX_PIXELS = 100_000
"""Larger widths and heights are not believed."""

_IMAGE_NAME = re.compile(r"\.(?:avif|gif|jpe?g|png|webp)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attached file. size: bytes, or None. url: "" unless http(s). dimensions: width and height of an image."""

    name: str
    size: int | None
    url: str
    dimensions: tuple[int, int] | None = None

    @property
    def is_image(self) -> bool:
        """Return whether its name is that of an image."""
        return _IMAGE_NAME.search(self.name) is not None

    @property
    def facts(self) -> str:
        """Return its size and dimensions, or ""."""
        size = () if self.size is None else (format_bytes(self.size),)
        pixels = () if self.dimensions is None else ("{} × {}".format(*map(formats.format_number, self.dimensions)),)
        return " · ".join((*size, *pixels))


@dataclass(frozen=True, slots=True)
class Embed:
    """A card below a message; any part may be "". fields: names and values. color: "#1ac2b5". URLs are http(s)."""

    author: str
    title: str
    text: str
    url: str
    fields: Sequence[tuple[str, str]] = ()
    footer: str = ""
    image_url: str = ""
    author_url: str = ""
    color: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to show."""
        return not any((self.author, self.title, self.text, self.url, self.fields, self.footer, self.image_url))


def format_bytes(size: int) -> str:
    """1536 → "1.5 KiB"."""
    return formats.format_file_size(size)


def read_attachments(kept: Iterable[str]) -> list[Attachment]:
    """Return the attachments. One without a name gets one."""
    found = []
    for value in read_objects(kept):
        size = value.get("size", value.get("fileSizeBytes"))
        found.append(
            Attachment(
                name=_text(value, "filename", "fileName") or _("unnamed file"),
                size=size if isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= MAX_ID else None,
                url=_url(value, "url"),
                dimensions=_dimensions(value),
            )
        )
    return found


def read_embeds(kept: Iterable[str]) -> list[Embed]:
    """Return the embeds that have anything to show."""
    embeds = []
    for value in read_objects(kept):
        fields = [part for part in _list(value, "fields")[:MAX_FIELDS] if isinstance(part, dict)]
        named = [(_text(field, "name"), _text(field, "value")) for field in fields]
        embed = Embed(
            author=_text(_object(value, "author"), "name"),
            title=_text(value, "title"),
            text=_text(value, "description"),
            url=_url(value, "url"),
            fields=[field for field in named if any(field)],
            footer=_text(_object(value, "footer"), "text"),
            image_url=_url(_object(value, "image"), "url") or _url(_object(value, "thumbnail"), "url"),
            author_url=_url(_object(value, "author"), "url"),
            color=_color(value),
        )
        if not embed.is_empty:
            embeds.append(embed)
    return embeds


def _color(value: Mapping[str, Any]) -> str:
    """Return "" for none, and for black, by which Discord stores none."""
    number = value.get("color")
    is_color = isinstance(number, int) and not isinstance(number, bool) and 0 < number <= WHITE
    return f"#{number:06x}" if is_color else ""


def read_stickers(kept: Iterable[str]) -> list[str]:
    """Return the stickers' names."""
    return [_text(value, "name") or _("unnamed sticker") for value in read_objects(kept)]


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _dimensions(value: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = value.get("width"), value.get("height")
    if type(width) is not int or type(height) is not int:
        return None
    return (width, height) if 0 < width <= MAX_PIXELS and 0 < height <= MAX_PIXELS else None


def _text(value: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found.strip():
            return found
    return ""


def _url(value: Mapping[str, Any], key: str) -> str:
    found = _text(value, key).strip()
    return make_inert(found) if found.startswith(("https://", "http://")) else ""
