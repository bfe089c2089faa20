"""Lays a page of messages out as a chat: days, runs of one author, quotes, gaps that purges left."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.controls import show_controls, show_hidden
from chatstore.domain.messages import DEFAULT_TYPE, REPLY_TYPE, Message
from chatstore.models import ChatUser
from chatstore.operations.gateway.timeline import Timeline
from moderation.operations.lookup.gaps import Gap
from moderation.presentation.extras import Attachment, Embed, read_attachments, read_embeds, read_stickers
from moderation.presentation.markup import shorten

RUN_SECONDS = 420
"""Messages of one author this close together are shown as one run, as chats do."""

TONES = 8
"""Colours of avatars; the stylesheet has as many."""

_SCATTER = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: neighbouring ids land far apart (Knuth's multiplicative hash)."""

QUOTE_CHARACTERS = 140

_SYSTEM_WORDS = {
    1: "added somebody to the conversation",
    2: "left the conversation or removed somebody",
    3: "started a call",
    4: "changed the channel's name",
    5: "changed the channel's icon",
    6: "pinned a message",
    7: "joined",
    8: "boosted the guild",
    18: "started a thread",
    21: "started this thread",
}
_SPOKEN = {DEFAULT_TYPE, REPLY_TYPE, 20, 23}
"""Types that a person (or a command of his) wrote: default, reply, slash and context commands."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote a message, as a page shows him. tone: which of the avatar colours."""

    user_id: int
    name: str
    is_bot: bool
    is_webhook: bool

    @property
    def initial(self) -> str:
        """The first letter or digit of the name."""
        return next((c.upper() for c in self.name if c.isalnum()), "?")[:1]

    @property
    def tone(self) -> int:
        """A colour that is the same on every page: the id, scattered, since its low bits are mostly 0."""
        return (self.user_id * _SCATTER >> 40) % TONES


@dataclass(frozen=True, slots=True)
class Quote:
    """What a reply answers. text: its beginning; gone: it is not there any more."""

    message_id: int
    writer: Writer | None
    text: str
    gone: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A message as the template draws it. day: set when a new day begins above it."""

    message: Message
    writer: Writer
    day: dt.date | None
    continued: bool
    quote: Quote | None
    system: str
    attachments: Sequence[Attachment]
    embeds: Sequence[Embed]
    stickers: Sequence[str]
    gaps: Sequence[Gap] = ()

    @property
    def is_wordless(self) -> bool:
        """Whether nothing of it can be shown."""
        message = self.message
        return not (message.content or self.attachments or self.embeds or self.stickers or self.system)


def lay_out(timeline: Timeline, gaps: Mapping[int | None, Sequence[Gap]] | None = None) -> list[Row]:
    """The rows of a page, oldest first. gaps: those shown above a message, by its id."""
    rows: list[Row] = []
    above: Message | None = None
    for message in timeline.messages:
        quote = _quote_of(message, timeline)
        here = (gaps or {}).get(message.message_id, ())
        rows.append(_row_of(message, users=timeline.users, above=above, quote=quote, gaps=here))
        above = message
    return rows


def rows_of(messages: Iterable[Message], users: Mapping[int, ChatUser]) -> list[Row]:
    """Rows of messages that stand for themselves (samples): each with its author."""
    rows: list[Row] = []
    above: Message | None = None
    for message in messages:
        rows.append(_row_of(message, users=users, above=above, runs=False))
        above = message
    return rows


def writer_of(message: Message, users: Mapping[int, ChatUser]) -> Writer:
    """Who wrote it: a webhook's name for this message, the user's, or his id."""
    user = users.get(message.author_id)
    name = message.author_name or (str(user) if user else f"user {message.author_id}")
    return Writer(
        user_id=message.author_id,
        name=show_hidden(name),
        is_bot=bool(user and user.is_bot),
        is_webhook=message.webhook_id is not None,
    )


def _row_of(
    message: Message,
    *,
    users: Mapping[int, ChatUser],
    above: Message | None = None,
    quote: Quote | None = None,
    gaps: Sequence[Gap] = (),
    runs: bool = True,
) -> Row:
    posted = message.posted_at
    new_day = above is None or above.posted_at.date() != posted.date()
    system = "" if message.type in _SPOKEN else _SYSTEM_WORDS.get(message.type, "")
    continued = (
        runs
        and above is not None
        and not new_day
        and not gaps
        and message.reference is None
        and (above.author_id, above.author_name) == (message.author_id, message.author_name)
        and (posted - above.posted_at).total_seconds() < RUN_SECONDS
    )
    return Row(
        message=message,
        writer=writer_of(message, users),
        day=posted.date() if new_day else None,
        continued=continued,
        quote=quote,
        system=system,
        attachments=read_attachments(message.attachments),
        embeds=read_embeds(message.embeds),
        stickers=[show_hidden(name) for name in read_stickers(message.stickers)],
        gaps=gaps,
    )


def _quote_of(message: Message, timeline: Timeline) -> Quote | None:
    channel_id, message_id = message.reference or (0, None)
    if message_id is None:
        return None
    if channel_id != message.channel_id:
        return Quote(message_id, None, "a message in another channel", gone=False)
    quoted = timeline.quoted.get((channel_id, message_id))
    if quoted is None:
        return Quote(message_id, None, "a message that is not here any more", gone=True)
    text = show_controls(shorten(quoted.content, characters=QUOTE_CHARACTERS, lines=1))
    return Quote(message_id, writer_of(quoted, timeline.users), text or "an attachment", gone=False)
