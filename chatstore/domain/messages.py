"""A message as stored, and a page of messages."""

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
"""Regular columns of `messages`, in the order in which every full-row read selects them."""

DEFAULT_TYPE = 0
REPLY_TYPE = 19
"""Discord's message types: 0 default, 19 reply; others are stored unchanged."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Collections are empty, never None; None means "not set".

    attachments, embeds, stickers: one JSON object each, as a string, in Discord's own format. reactions: emoji (name or
    `name:id`) to count. mentions: user ids. reference: (channel id, message id or None) of the message that this one
    replies to or forwards. author_name: the name that a webhook set for this message only.
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
        """The bucket that its id belongs to."""
        return bucket_of(self.message_id)

    @property
    def posted_at(self) -> dt.datetime:
        """The time of the post, from the id."""
        return time_of(self.message_id)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a channel, newest first in either direction.

    older, newer: exclusive cursors (`before` / `after` ids) for the neighbouring pages, or None if there are no more on
    that side. searched_back_to: set if the deadline ended the search before the page was full; messages beyond it were
    not read yet. hidden: rows without an author that were left out (an edit that raced a delete).
    """

    messages: Sequence[Message]
    older: int | None
    newer: int | None
    searched_back_to: dt.datetime | None = None
    hidden: int = 0
