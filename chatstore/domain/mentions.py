"""Users, channels and roles that messages mention, in their texts and in the texts of embeds that pages show as markup.

Senders may leave out the list of mentioned users, and Discord lists none of those that embeds mention. Texts are
untrusted: a number may be too large for an ID, and one text may mention hundreds. So the messages of a page take turns:
the first mention of each is found before the second of any.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice, zip_longest

from chatstore.domain.discord_shapes import read_objects
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import MAX_ID

MAX_MENTIONED = 200
"""Users, channels and roles, each, that are found in the texts of one page."""

_USER = re.compile(r"<@!?(\d{1,20})>")
_CHANNEL = re.compile(r"<#(\d{1,20})>")
_ROLE = re.compile(r"<@&(\d{1,20})>")


def find_mentioned_users(messages: Iterable[Message], *, known: Collection[int] = ()) -> list[int]:
    """Return the IDs of at most `MAX_MENTIONED` users that texts mention, besides those that are known."""
    return _find(_USER, messages, known)


def find_mentioned_channels(messages: Iterable[Message]) -> list[int]:
    """Return the IDs of at most `MAX_MENTIONED` channels that texts mention."""
    return _find(_CHANNEL, messages)


def find_mentioned_roles(messages: Iterable[Message]) -> list[int]:
    """Return the IDs of at most `MAX_MENTIONED` roles that texts mention."""
    return _find(_ROLE, messages)


def _find(pattern: re.Pattern[str], messages: Iterable[Message], known: Collection[int] = ()) -> list[int]:
    mentioned = [_find_in(pattern, message, known) for message in messages]
    turns = (each for turn in zip_longest(*mentioned) for each in turn if each is not None)
    return list(islice(dict.fromkeys(turns), MAX_MENTIONED))


def _find_in(pattern: re.Pattern[str], message: Message, known: Collection[int]) -> list[int]:
    """Return the IDs that a message mentions, each once."""
    found = (int(number) for text in _texts_of(message) for number in pattern.findall(text))
    return list(islice(dict.fromkeys(each for each in found if each <= MAX_ID and each not in known), MAX_MENTIONED))


def _texts_of(message: Message) -> Iterator[str]:
    """Yield the text of a message, and the descriptions and values of its embeds."""
    yield message.content
    # Most embeds contain no mention, and need not be parsed. JSON may have "<" as an escape sequence.
    for embed in read_objects(kept for kept in message.embeds if "<" in kept or "\\u003" in kept):
        fields = embed.get("fields")
        values = [field.get("value") for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
        yield from (text for text in (embed.get("description"), *values) if isinstance(text, str))
