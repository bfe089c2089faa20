"""Attachments, embeds and stickers of a message, read from the JSON they are kept as.

They came from outside: every field may be missing or of another type, and an address
may be anything. Only http and https addresses become links, whatever acts in
them percent-encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chatstore.domain.controls import make_inert

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that was sent along. size: bytes, or None. url: "" unless http(s)."""

    name: str
    size: int | None
    url: str

    @property
    def size_in_words(self) -> str:
        """The size as people say it, or ""."""
        return "" if self.size is None else say_bytes(self.size)


@dataclass(frozen=True, slots=True)
class Embed:
    """A card below a message; any part may be ""."""

    author: str
    title: str
    text: str
    url: str

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show (an image alone, which is never loaded)."""
        return not (self.author or self.title or self.text or self.url)


def say_bytes(size: int) -> str:
    """1536 → "1.5 KiB"."""
    value, unit = float(size), "bytes"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if value < _KIB:
            break
        value, unit = value / _KIB, bigger
    return f"{size} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def read_attachments(kept: Iterable[str]) -> list[Attachment]:
    """The attachments, each with a name even when it came without one."""
    found = []
    for value in _objects(kept):
        size = value.get("size", value.get("fileSizeBytes"))
        found.append(
            Attachment(
                name=_text(value, "filename", "fileName") or "unnamed file",
                size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
                url=_address(value, "url"),
            )
        )
    return found


def read_embeds(kept: Iterable[str]) -> list[Embed]:
    """The embeds that have anything to show."""
    embeds = []
    for value in _objects(kept):
        author = value.get("author")
        fields = [part for part in _list(value, "fields") if isinstance(part, dict)]
        texts = [_text(value, "description"), *(f"{_text(f, 'name')}: {_text(f, 'value')}" for f in fields)]
        embed = Embed(
            author=_text(author, "name") if isinstance(author, dict) else "",
            title=_text(value, "title"),
            text="\n".join(text for text in texts if text),
            url=_address(value, "url"),
        )
        if not embed.is_empty:
            embeds.append(embed)
    return embeds


def read_stickers(kept: Iterable[str]) -> list[str]:
    """The stickers' names."""
    return [_text(value, "name") or "unnamed sticker" for value in _objects(kept)]


def _objects(kept: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for text in kept:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _text(value: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found.strip():
            return found
    return ""


def _address(value: Mapping[str, Any], key: str) -> str:
    found = _text(value, key).strip()
    return make_inert(found) if found.startswith(("https://", "http://")) else ""
