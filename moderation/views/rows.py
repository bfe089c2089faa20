"""Rows of a chat: days, consecutive messages of one author, quotes, and the gaps that purges left."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from chatstore.domain.controls import show_hidden
from chatstore.domain.members import MemberRole
from chatstore.domain.messages import DEFAULT_TYPE, REPLY_TYPE, Message
from chatstore.domain.snowflakes import MAX_ID
from chatstore.models import ChatUser
from chatstore.operations.gateway.timeline import Timeline
from moderation.operations.lookup.gaps import Gap
from moderation.presentation.avatars import initials_of, tone_of
from moderation.presentation.extras import Attachment, Embed, read_attachments, read_embeds, read_stickers
from moderation.presentation.people import name_unknown

RUN_SECONDS = 420
"""Messages of one author this close together form one run, as in other chats."""

_NO_ROLES: Mapping[int, MemberRole] = MappingProxyType({})

_SYSTEM_WORDS = {
    1: gettext_lazy("added someone to the conversation"),
    2: gettext_lazy("left the conversation or removed someone"),
    3: gettext_lazy("started a call"),
    4: gettext_lazy("changed the channel’s name"),
    5: gettext_lazy("changed the channel’s icon"),
    6: gettext_lazy("pinned a message"),
    7: gettext_lazy("joined"),
    8: gettext_lazy("boosted the server"),
    18: gettext_lazy("started a thread"),
    21: gettext_lazy("started this thread"),
}
_SPOKEN = {DEFAULT_TYPE, REPLY_TYPE, 20, 23}
"""Types that users write: default, reply, slash and context commands."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The author of a message as a page shows them. tone: number of the avatar's color.

    role: their highest one in the guild, on pages that show it.
    """

    user_id: int
    name: str
    is_bot: bool
    is_webhook: bool
    role: MemberRole | None = None

    @property
    def initials(self) -> str:
        """Return the first letters or digits of the name's first two words."""
        return initials_of(self.name)

    @property
    def tone(self) -> int:
        """Return a color that is the same on every page."""
        return tone_of(self.user_id)


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that a reply refers to. text: its own, or a sentence in place of it. gone: it no longer exists."""

    message_id: int
    writer: Writer | None
    text: str
    gone: bool


@dataclass(frozen=True, slots=True)
class GapLine:
    """A line in place of deleted messages. total: number of them that the line stands for.

    is_collapsed: it stands for all gaps of the purge on the page, of which there are several. Each gap has a line of
    its own too, which is shown on request (is_part).
    """

    gap: Gap
    total: int
    is_collapsed: bool = False
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message as the template renders it. day: in the viewer's time zone, set if a new day begins above it."""

    message: Message
    writer: Writer
    day: dt.date | None
    continued: bool
    quote: Quote | None
    system: str | Promise
    attachments: Sequence[Attachment]
    embeds: Sequence[Embed]
    stickers: Sequence[str]
    gaps: Sequence[GapLine] = ()

    @property
    def is_wordless(self) -> bool:
        """Return whether there is nothing to show."""
        message = self.message
        return not (message.content or self.attachments or self.embeds or self.stickers or self.system)


def collapse_gaps(gaps: Mapping[int | None, Sequence[Gap]]) -> dict[int | None, list[GapLine]]:
    """Return lines by the ID of the message below them, None for those at the end.

    One line stands for all gaps of a purge, in place of the newest one: a raid leaves hundreds.
    """
    totals, places = Counter[int](), Counter[int]()
    newest: dict[int, int | None] = {}
    for below in sorted(gaps, key=lambda below: MAX_ID if below is None else below):
        for gap in gaps[below]:
            totals[gap.purge_id] += gap.count
            places[gap.purge_id] += 1
            newest[gap.purge_id] = below
    lines: dict[int | None, list[GapLine]] = {}
    for below, found in gaps.items():
        for gap in found:
            here = lines.setdefault(below, [])
            is_collapsed = places[gap.purge_id] > 1
            if newest[gap.purge_id] == below:
                here.append(GapLine(gap, totals[gap.purge_id], is_collapsed=is_collapsed))
            # The script joins the lines of a purge when it loads more messages.
            here.append(GapLine(gap, gap.count, is_part=True))
    return lines


def lay_out(
    timeline: Timeline,
    gaps: Mapping[int | None, Sequence[GapLine]] | None = None,
    *,
    roles: Mapping[int, MemberRole] = _NO_ROLES,
) -> list[MessageRow]:
    """Return the rows of a page, oldest first.

    gaps: those above a message, by its id. roles: the highest one of each author who has any.
    """
    rows: list[MessageRow] = []
    above: Message | None = None
    for message in timeline.messages:
        quote = _quote_of(message, timeline)
        here = (gaps or {}).get(message.message_id, ())
        row = _row_of(message, users=timeline.users, above=above, quote=quote, gaps=here, roles=roles)
        rows.append(row)
        above = message
    return rows


def rows_of(messages: Iterable[Message], users: Mapping[int, ChatUser]) -> list[MessageRow]:
    """Return rows of separate messages (samples): each with its author."""
    rows: list[MessageRow] = []
    above: Message | None = None
    for message in messages:
        rows.append(_row_of(message, users=users, above=above, runs=False))
        above = message
    return rows


def writer_of(message: Message, users: Mapping[int, ChatUser], roles: Mapping[int, MemberRole] = _NO_ROLES) -> Writer:
    """Return the author: the webhook's name for this message, the user's name, or the user's id."""
    user = users.get(message.author_id)
    name = message.author_name or (str(user) if user else name_unknown(message.author_id))
    return Writer(
        user_id=message.author_id,
        name=show_hidden(name),
        is_bot=bool(user and user.is_bot),
        is_webhook=message.webhook_id is not None,
        role=None if message.webhook_id is not None else roles.get(message.author_id),
    )


def _row_of(
    message: Message,
    *,
    users: Mapping[int, ChatUser],
    above: Message | None = None,
    quote: Quote | None = None,
    gaps: Sequence[GapLine] = (),
    roles: Mapping[int, MemberRole] = _NO_ROLES,
    runs: bool = True,
) -> MessageRow:
    posted = message.posted_at
    day = timezone.localtime(posted).date()
    new_day = above is None or timezone.localtime(above.posted_at).date() != day
    system = "" if message.type in _SPOKEN else _SYSTEM_WORDS.get(message.type, "")
    continued = (
        runs
        and above is not None
        and not new_day
        and all(line.is_part for line in gaps)
        and message.reference is None
        and (above.author_id, above.author_name) == (message.author_id, message.author_name)
        and (posted - above.posted_at).total_seconds() < RUN_SECONDS
    )
    return MessageRow(
        message=message,
        writer=writer_of(message, users, roles),
        day=day if new_day else None,
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
        return Quote(message_id, None, gettext("a message in another channel"), gone=False)
    quoted = timeline.quoted.get((channel_id, message_id))
    if quoted is None:
        return Quote(message_id, None, gettext("a message that no longer exists"), gone=True)
    return Quote(message_id, writer_of(quoted, timeline.users), quoted.content, gone=False)
