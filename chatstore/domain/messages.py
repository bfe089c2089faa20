"""A message as the store keeps it, and a page of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chatstore.domain.buckets import bucket_of
from chatstore.domain.snowflakes import time_of

MESSAGE_ID, AUTHOR_ID, WRITETIME = 0, 1, -1
"""Positions in a row of messages: the id comes first, the author second, and the WRITETIME, where it is read, last."""

VALUE_COLUMNS = (
    "author_id",
    "type",
    "content",
    "edited_at",
    "flags",
    "pinned",
    "webhook_id",
    "author_name",
    "attachments",
    "embeds",
    "stickers",
    "reactions",
    "mentions",
    "reference",
)
"""The regular columns of `messages`, in the order every whole-row read selects them."""

DEFAULT_TYPE = 0
REPLY_TYPE = 19
"""Discord's message types: 0 default, 19 reply; others are kept as they came."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Collections are empty, never None; `None` is "not set".

    attachments, embeds, stickers: one JSON object each, as text, in Discord's own shape.
    reactions: emoji (name or `name:id`) to count. mentions: user ids.
    reference: (channel id, message id or None) of what it replies to or forwards.
    author_name: the name a webhook gave for this message only.
    """

    channel_id: int
    message_id: int
    author_id: int
    content: str = ""
    type: int = DEFAULT_TYPE
    edited_at: dt.datetime | None = None
    flags: int = 0
    pinned: bool = False
    webhook_id: int | None = None
    author_name: str | None = None
    attachments: Sequence[str] = ()
    embeds: Sequence[str] = ()
    stickers: Sequence[str] = ()
    reactions: Mapping[str, int] = field(default_factory=dict)
    mentions: Sequence[int] = ()
    reference: tuple[int, int | None] | None = None

    @property
    def bucket(self) -> int:
        """The bucket its id belongs to."""
        return bucket_of(self.message_id)

    @property
    def posted_at(self) -> dt.datetime:
        """When it was posted, from the id."""
        return time_of(self.message_id)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a channel, newest first whatever way it was asked.

    older, newer: exclusive cursors (`before` / `after` ids) for the neighbouring pages, or
    None when there is nothing further on that side. `looked_back_to`: set when the deadline
    ended the search before the page was full; what lies beyond was not looked at yet.
    hidden: rows without an author that were seen and left out (an edit that raced a delete).
    """

    messages: Sequence[Message]
    older: int | None
    newer: int | None
    looked_back_to: dt.datetime | None = None
    hidden: int = 0
