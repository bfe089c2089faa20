"""Validation of messages that a gateway posts: types and sizes.

A message that passes can be stored and shown: ids fit 64 bits, counts 32, strings are UTF-8, and JSON columns contain
objects that can be parsed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from chatstore.domain.discord_shapes import MAX_INT
from chatstore.domain.errors import BadInput
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import MAX_ID, MIN_ID

_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """Maximum sizes of a message. name: characters of a webhook's name and of a reaction's emoji; embed_characters: of
    all text in all embeds; total_bytes: of everything that is stored.
    """

    characters: int
    name_characters: int
    embeds: int
    embed_characters: int
    total_bytes: int


def check_id(value: object, *, what: str = "id") -> int:
    """Return the id. Raises `BadInput` for anything but a 64-bit signed integer."""
    if not _is_int(value):
        raise BadInput(f"the {what} must be a whole number, not {type(value).__name__}")
    if not MIN_ID <= value <= MAX_ID:
        # Not shown: Python refuses to format a number of more than 4,300 digits.
        raise BadInput(f"the {what} is not an ID: it does not fit 64 bits")
    return value


def check_content(content: object, limits: MessageLimits) -> str:
    """Return the content of a message. Raises `BadInput`."""
    return check_text("content", content, maximum=limits.characters)


def check_message(message: Message, limits: MessageLimits) -> None:
    """Raise `BadInput` if a message can't be stored or exceeds the limits."""
    check_id(message.channel_id, what="channel id")
    check_id(message.author_id, what="author id")
    check_content(message.content, limits)
    for name in ("type", "flags"):
        _check_count(name, getattr(message, name))
    if message.webhook_id is not None:
        check_id(message.webhook_id, what="webhook id")
    if message.author_name is not None:
        check_text("author_name", message.author_name, maximum=limits.name_characters)
    for mentioned in _check_sequence("mentions", message.mentions):
        check_id(mentioned, what="mentioned id")
    _check_reference(message.reference)
    _check_reactions(message.reactions, limits)
    _check_objects(message, limits)
    if _count_bytes(message) > limits.total_bytes:
        raise BadInput(f"the message is larger than {limits.total_bytes:,} bytes")


def _check_reference(reference: object) -> None:
    if reference is None:
        return
    if not isinstance(reference, tuple) or len(reference) != 2:
        raise BadInput("the reference must be a channel id and a message id, or None")
    check_id(reference[0], what="channel id of the reference")
    if reference[1] is not None:
        check_id(reference[1], what="message id of the reference")


def _check_reactions(reactions: object, limits: MessageLimits) -> None:
    if not isinstance(reactions, Mapping):
        raise BadInput(f"reactions must be a mapping, not {type(reactions).__name__}")
    for emoji, count in reactions.items():
        check_text("a reaction's emoji", emoji, maximum=limits.name_characters)
        _check_count("a reaction's count", count)


def _check_objects(message: Message, limits: MessageLimits) -> None:
    for name in ("attachments", "stickers", "embeds"):
        kept = _check_sequence(name, getattr(message, name))
        if name == "embeds" and len(kept) > limits.embeds:
            raise BadInput(f"a message has at most {limits.embeds} embeds, not {len(kept)}")
        objects = [_read_object(name, text) for text in kept]
        if name == "embeds" and sum(_count_embed(value) for value in objects) > limits.embed_characters:
            raise BadInput(f"the embeds of a message have at most {limits.embed_characters:,} characters in all")


def _read_object(name: str, text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        raise BadInput(f"{name} must be JSON strings, not {type(text).__name__}")
    try:
        value = json.loads(text)
        # Serialized again, since a string without surrogates may contain one as an escape sequence.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadInput(f"one of the {name} contains a lone surrogate (half a character)") from None
    except (ValueError, RecursionError):
        raise BadInput(f"one of the {name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadInput(f"each of the {name} must be a JSON object")
    return value


def _count_embed(embed: Mapping[str, Any]) -> int:
    """Count characters as Discord does: title, description, fields, footer and author."""
    return sum(len(text) for text in _embed_texts(embed) if isinstance(text, str))


def _embed_texts(embed: Mapping[str, Any]) -> Iterator[object]:
    yield from (embed.get("title"), embed.get("description"))
    for part, key in ((embed.get("footer"), "text"), (embed.get("author"), "name")):
        if isinstance(part, dict):
            yield part.get(key)
    fields = embed.get("fields")
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict):
            yield from (field.get("name"), field.get("value"))


def check_text(name: str, value: object, *, maximum: int) -> str:
    """Return a text that UTF-8 can encode. Raises `BadInput`."""
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a string, not {type(value).__name__}")
    if len(value) > maximum:
        raise BadInput(f"{name} may have at most {maximum:,} characters, not {len(value):,}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{name} contains a lone surrogate (half a character)") from None
    return value


def _check_count(name: str, value: object) -> None:
    if not _is_int(value) or not 0 <= value <= MAX_INT:
        raise BadInput(f"{name} must be a whole number from 0 to {MAX_INT:,}")


def _check_sequence(name: str, value: object) -> Sequence[object]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise BadInput(f"{name} must be a sequence, not {type(value).__name__}")
    return value


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _count_bytes(message: Message) -> int:
    texts = [message.content, message.author_name or "", *message.reactions]
    texts += [*message.attachments, *message.embeds, *message.stickers]
    numbers = len(message.mentions) + len(message.reactions)
    return sum(len(text.encode()) for text in texts) + _ID_BYTES * numbers
