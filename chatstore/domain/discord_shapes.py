"""Conversion of attachments, embeds, stickers and reactions from DiscordChatExporter's JSON to Discord's own.

The exporter renames keys (`fileName`, `isInline`, colors as text). Stored is the format of Discord's API, so that a
message looks the same whether it was imported or posted. Parts of an unexpected type are left out: a part that cannot
be read is no reason to lose a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

MAX_INT = (1 << 31) - 1
"""Maximum of Cassandra's `int`; higher counts are stored as this value."""

WHITE = 0xFFFFFF

_STICKER_FORMATS = {"png": 1, "apng": 2, "lottie": 3, "gif": 4}


def pack_attachments(raw: object) -> tuple[str, ...]:
    """Return one JSON string each: id, filename, size (bytes), url."""
    return _pack_each(raw, _shape_attachment)


def pack_embeds(raw: object) -> tuple[str, ...]:
    """Return one JSON string each, with Discord's keys; pictures that the exporter proxied keep both URLs."""
    return _pack_each(raw, _shape_embed)


def pack_stickers(raw: object) -> tuple[str, ...]:
    """Return one JSON string each: id, name, format_type, and the exporter's URL."""
    return _pack_each(raw, _shape_sticker)


def read_objects(kept: Iterable[str]) -> Iterator[Json]:
    """Yield the JSON objects that strings contain."""
    for text in kept:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def count_reactions(raw: object) -> dict[str, int]:
    """Return the number of users per emoji (the character, or `name:id` of a guild's own)."""
    counts: dict[str, int] = {}
    for reaction in raw if isinstance(raw, list) else ():
        if not isinstance(reaction, dict) or not isinstance(reaction.get("emoji"), dict):
            continue
        emoji, count = reaction["emoji"], reaction.get("count", 1)
        name, emoji_id = emoji.get("name"), emoji.get("id")
        if not isinstance(name, str) or not isinstance(count, int) or count < 1:
            continue
        key = f"{name}:{emoji_id}" if _is_id(emoji_id) else name
        counts[key] = min(counts.get(key, 0) + count, MAX_INT)
    return counts


def _pack_each(raw: object, shape: Callable[[Json], dict[str, Any]]) -> tuple[str, ...]:
    if not raw or not isinstance(raw, list):
        return ()
    shaped = (shape(each) for each in raw if isinstance(each, dict))
    return tuple(_to_text(each) for each in shaped if each)


def _to_text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_id(raw: object) -> bool:
    return isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) <= 20


def _pick(raw: object, **keys: str) -> dict[str, Any]:
    """Return the named strings and numbers that are set: `_pick(raw, icon_url="iconUrl")`."""
    if not isinstance(raw, dict):
        return {}
    found = ((ours, raw.get(theirs)) for ours, theirs in keys.items())
    return {ours: value for ours, value in found if isinstance(value, str | int | float) and value != ""}


def _shape_attachment(raw: Json) -> dict[str, Any]:
    shaped = _pick(raw, id="id", filename="fileName", size="fileSizeBytes", url="url")
    return {**_pick(raw, filename="filename", size="size", content_type="content_type"), **shaped}


def _shape_sticker(raw: Json) -> dict[str, Any]:
    shaped = _pick(raw, id="id", name="name", url="sourceUrl", format_type="format_type")
    named = raw.get("format")
    known = _STICKER_FORMATS.get(named.lower()) if isinstance(named, str) else None
    return {**shaped, "format_type": known} if known else shaped


def _shape_embed(raw: Json) -> dict[str, Any]:
    shaped = _pick(raw, title="title", url="url", timestamp="timestamp", description="description")
    color = _parse_color(raw.get("color"))
    parts = {
        "color": color,
        "author": _pick(raw.get("author"), name="name", url="url", icon_url="iconUrl"),
        "footer": _pick(raw.get("footer"), text="text", icon_url="iconUrl"),
        "thumbnail": _shape_picture(raw.get("thumbnail")),
        "image": _shape_picture(raw.get("image") or _first_of(raw.get("images"))),
        "video": _shape_picture(raw.get("video")),
        "fields": _shape_fields(raw.get("fields")),
    }
    return shaped | {key: value for key, value in parts.items() if value not in (None, {}, [])}


def _shape_picture(raw: object) -> dict[str, Any]:
    shaped = _pick(raw, proxy_url="url", url="canonicalUrl", width="width", height="height")
    if "url" not in shaped and "proxy_url" in shaped:
        shaped["url"] = shaped.pop("proxy_url")
    return shaped


def _shape_fields(raw: object) -> list[dict[str, Any]]:
    fields = raw if isinstance(raw, list) else []
    shaped = (_pick(field, name="name", value="value", inline="isInline") for field in fields)
    return [field for field in shaped if field]


def _first_of(raw: object) -> object:
    return raw[0] if isinstance(raw, list) and raw else None


def _parse_color(raw: object) -> int | None:
    """Return `#RRGGBB` (or Discord's own number) as a number."""
    if isinstance(raw, str):
        try:
            raw = int(raw.removeprefix("#"), 16) if len(raw) <= len("#RRGGBB") else None
        except ValueError:
            return None
    return raw if isinstance(raw, int) and 0 <= raw <= WHITE else None
