"""Attachments, embeds and stickers of a message, parsed from the JSON they are stored as.

They are untrusted: every field may be missing or of another type, and a URL may be anything.
Only http and https URLs become links, with active characters percent-encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from chatstore.domain.controls import make_inert
from moderation.presentation import formats


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attached file. size: bytes, or None. url: "" unless http(s)."""

    name: str
    size: int | None
    url: str

    @property
    def formatted_size(self) -> str:
        """Return the formatted size, or ""."""
        return "" if self.size is None else format_bytes(self.size)


@dataclass(frozen=True, slots=True)
class Embed:
    """A card below a message; any part may be ""."""

    author: str
    title: str
    text: str
    url: str

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to show, as for an image alone, which is never loaded."""
        return not (self.author or self.title or self.text or self.url)


def format_bytes(size: int) -> str:
    """1536 → "1.5 KiB"."""
    return formats.format_file_size(size)


def read_attachments(kept: Iterable[str]) -> list[Attachment]:
    """Return the attachments. One without a name gets one."""
    found = []
    for value in _objects(kept):
        size = value.get("size", value.get("fileSizeBytes"))
        found.append(
            Attachment(
                name=_text(value, "filename", "fileName") or _("unnamed file"),
                size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
                url=_url(value, "url"),
            )
        )
    return found


def read_embeds(kept: Iterable[str]) -> list[Embed]:
    """Return the embeds that have anything to show."""
    embeds = []
    for value in _objects(kept):
        author = value.get("author")
        fields = [part for part in _list(value, "fields") if isinstance(part, dict)]
        texts = [_text(value, "description"), *(f"{_text(f, 'name')}: {_text(f, 'value')}" for f in fields)]
        embed = Embed(
            author=_text(author, "name") if isinstance(author, dict) else "",
            title=_text(value, "title"),
            text="\n".join(text for text in texts if text),
            url=_url(value, "url"),
        )
        if not embed.is_empty:
            embeds.append(embed)
    return embeds


def read_stickers(kept: Iterable[str]) -> list[str]:
    """Return the stickers' names."""
    return [_text(value, "name") or _("unnamed sticker") for value in _objects(kept)]


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


def _url(value: Mapping[str, Any], key: str) -> str:
    found = _text(value, key).strip()
    return make_inert(found) if found.startswith(("https://", "http://")) else ""
