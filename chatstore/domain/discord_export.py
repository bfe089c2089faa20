"""DiscordChatExporter's JSON files, parsed into our values.

Every key but a message's id and timestamp and its author's id is optional, since the exporter's versions differ and
people edit files by hand. A message that cannot be imported raises `MessageRejected`; a file whose channel has no id
raises `ExportRejected`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatstore.domain.discord_shapes import (
    MAX_INT,
    count_reactions,
    pack_attachments,
    pack_embeds,
    pack_stickers,
)
from chatstore.domain.errors import BadInput
from chatstore.domain.json_stream import Unreadable
from chatstore.domain.members import MAX_ROLE_CHARACTERS, MAX_ROLES, MemberRole, clean_color, is_icon_url
from chatstore.domain.messages import DEFAULT_TYPE, REPLY_TYPE, Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS
from chatstore.domain.snowflakes import MAX_ID, TIME_SHIFT, ms_of, parse_snowflake, time_of, unix_ms

Json = Mapping[str, Any]

MESSAGE_BYTES_LIMIT = 512 * 1024
"""Limit for one message with its attachments, embeds, reactions and mentions. Discord's own limits add up to some 30
KiB; twice this value would not fit a quarantine chunk of 1 MiB.
"""

FUTURE_LIMIT_MS = HOUR_MS
"""An id's time may be this far ahead of our clock, since exporters' clocks differ from ours."""

FORWARD_FLAG = 1 << 14
"""Discord's HAS_SNAPSHOT: the content shown is that of the forwarded message."""

_DIRECT_GUILD = 0
"""The exporter's id for the "guild" of direct messages."""

_FALLBACK_ICON = "/embed/avatars/"
"""Path of the picture that the exporter names for a guild without an icon; initials tell guilds apart better."""

JOIN_TYPE = 7
"""Type of the message by which a chat announces that its author joined the guild."""

_ID_IN_NAME = re.compile(r"(?<![0-9])[0-9]{17,19}(?![0-9])")

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Lone surrogates, which no encoding can represent."""

_TYPES = {
    "Default": DEFAULT_TYPE,
    "RecipientAdd": 1,
    "RecipientRemove": 2,
    "Call": 3,
    "ChannelNameChange": 4,
    "ChannelIconChange": 5,
    "ChannelPinnedMessage": 6,
    "GuildMemberJoin": JOIN_TYPE,
    "ThreadCreated": 18,
    "Reply": REPLY_TYPE,
}
_CHANNEL_KINDS = {
    "DirectTextChat": "direct",
    "DirectGroupTextChat": "direct",
    "GuildVoiceChat": "voice",
    "GuildStageVoice": "voice",
    "GuildNews": "news",
    "GuildNewsThread": "thread",
    "GuildPublicThread": "thread",
    "GuildPrivateThread": "thread",
    "GuildForum": "forum",
    "GuildMedia": "forum",
}


class _Rejected(BadInput):
    """An import error. `kind`: the reason without details, the same for all cases of one problem."""

    def __init__(self, reason: str, *, kind: str = "") -> None:
        super().__init__(reason)
        self.kind = kind or reason


class ExportRejected(_Rejected):
    """The file cannot be imported (or not any further)."""


class MessageRejected(_Rejected):
    """The message cannot be imported; the text names it."""


@dataclass(frozen=True, slots=True)
class ExportHeader:
    """The part of a file before its messages: the channel and its guild (None for direct messages).

    kind: one of `Channel.Kind`'s values. guild_icon_url: "" if the file names none.
    """

    channel_id: int
    channel_name: str
    kind: str
    category: str
    topic: str
    guild_id: int | None
    guild_name: str
    guild_icon_url: str = ""


@dataclass(frozen=True, slots=True)
class ExportedUser:
    """An author or a mentioned user as shown in the export."""

    user_id: int
    name: str
    display_name: str
    is_bot: bool


def parse_header(
    guild: object, channel: object, *, given_id: int | None = None, derive_from: str | None = None
) -> ExportHeader:
    """Parse the file's `guild` and `channel` objects; raise `ExportRejected` if there is no channel id.

    given_id: the id for a channel that has none. derive_from: the file's name; a channel without an id then gets the id
    in that name, or else one derived from its own name.
    """
    if not isinstance(channel, dict):
        raise ExportRejected("its channel has no id")
    try:
        guild_id, guild_name = _parse_guild(guild)
        channel_id = None if channel.get("id") in (None, "") else parse_snowflake(channel["id"])
    except BadInput as bad:
        raise ExportRejected(f"its channel or guild: {bad}", kind="its channel or guild has no valid id") from None
    if channel_id is not None and given_id not in (None, channel_id):
        raise ExportRejected(
            f"its channel has the id {channel_id}, not {given_id}", kind="its channel id differs from the given one"
        )
    shown = channel.get("type")
    kind = _CHANNEL_KINDS.get(shown, "text") if isinstance(shown, str) else "text"
    if kind == "direct":
        guild_id = None
    name, category = clean_name(channel.get("name"), 200), clean_name(channel.get("category"), 200)
    if channel_id is None:
        channel_id = given_id
    if channel_id is None and derive_from is not None:
        channel_id = find_id_in(derive_from) or derive_id(guild_id, category, name)
    if channel_id is None:
        raise ExportRejected("its channel has no id")
    return ExportHeader(
        channel_id=channel_id,
        channel_name=name or f"channel {channel_id}",
        kind="direct" if guild_id is None and kind == "text" else kind,
        category=category,
        topic=clean_name(channel.get("topic"), 4_000),
        guild_id=guild_id,
        guild_name=guild_name,
        guild_icon_url="" if guild_id is None else _parse_icon(guild),
    )


def find_id_in(file_name: str) -> int | None:
    """Return the last id in a file's name, where the exporter puts the channel's: "Harbour - pier [id].json"."""
    found = _ID_IN_NAME.findall(file_name)
    return int(found[-1]) if found and int(found[-1]) <= MAX_ID else None


def derive_id(guild_id: int | None, category: str, name: str) -> int | None:
    """Return an id for a channel that has only a name, the same each time; None without a name.

    It is on the first day of 2015, when Discord assigned no ids, so it cannot collide with another channel's.
    """
    if not name:
        return None
    hashed = hashlib.sha256("\0".join((str(guild_id), category, name)).encode()).digest()
    return int.from_bytes(hashed[:8]) % ((DAY_MS << TIME_SHIFT) - 1) + 1


def _parse_guild(guild: object) -> tuple[int | None, str]:
    if not isinstance(guild, dict) or guild.get("id") in (None, ""):
        return None, ""
    guild_id = parse_snowflake(guild["id"])
    if guild_id == _DIRECT_GUILD:
        return None, ""
    return guild_id, clean_name(guild.get("name"), 200) or f"guild {guild_id}"


def _parse_icon(guild: object) -> str:
    """Return the URL of a guild's icon. Exports with downloaded media have the path of a file instead: none."""
    url = guild.get("iconUrl") if isinstance(guild, dict) else None
    return url if isinstance(url, str) and is_icon_url(url) and _FALLBACK_ICON not in url else ""


def clean_name(raw: object, limit: int) -> str:
    """Return a name that Postgres accepts: no NUL, no lone surrogate, at most `limit` characters; "" if it is not a
    string.
    """
    return _LONE_SURROGATE.sub("\ufffd", raw.replace("\0", "")).strip()[:limit] if isinstance(raw, str) else ""


def parse_user(raw: Json) -> ExportedUser:
    """Parse an author or a mentioned user; raise `BadInput` if the id is invalid."""
    user_id = parse_snowflake(raw.get("id"))
    name = clean_name(raw.get("name"), 100)
    shown = clean_name(raw.get("nickname"), 100)
    return ExportedUser(user_id, name or f"user {user_id}", "" if shown == name else shown, raw.get("isBot") is True)


def parse_roles(author: Json) -> tuple[MemberRole, ...] | None:
    """Return an author's roles, the highest first; None if unknown.

    The exporter writes no roles for authors who had left the guild, so none means unknown.
    """
    listed = author.get("roles")
    if not listed or not isinstance(listed, list):
        return None
    found = []
    for place, raw in enumerate(listed):
        if isinstance(raw, dict) and (name := clean_name(raw.get("name"), MAX_ROLE_CHARACTERS)):
            position = raw.get("position")
            rank = -position if isinstance(position, int) else 0
            found.append((rank, place, MemberRole(name, clean_color(raw.get("color")), _role_id(raw))))
    return tuple(role for _, _, role in sorted(found, key=lambda one: one[:2])[:MAX_ROLES]) or None


def _role_id(raw: Json) -> int | None:
    try:
        return parse_snowflake(raw.get("id"))
    except BadInput:
        return None


def is_webhook(author: Json) -> bool:
    """Return whether an author is a webhook: the only bots without a discriminator of their own."""
    return author.get("isBot") is True and author.get("discriminator") == "0000"


def parse_message(raw: object, *, channel_id: int, now_ms: int) -> Message:
    """Parse one of the export's `messages`; `now_ms` is the current time in Unix milliseconds.

    Raises `MessageRejected`. Most messages have only content, so the other parts are parsed only where they are
    present: this runs once for each of millions of messages.
    """
    if not isinstance(raw, dict):
        if isinstance(raw, Unreadable):
            raise MessageRejected(raw.reason, kind="invalid JSON")
        raise MessageRejected("a message is not an object")
    message_id, author_id, author = _parse_identity(raw)
    _check_time(raw, message_id, now_ms)
    shown, flags = _find_shown(raw)
    content = shown.get("content")
    webhook = is_webhook(author)
    return Message(
        channel_id,
        message_id,
        author_id,
        content if isinstance(content, str) else "",
        parse_type(raw.get("type")),
        _parse_edited(edited) if (edited := raw.get("timestampEdited")) else None,
        flags,
        raw.get("isPinned") is True,
        author_id if webhook else None,
        clean_name(author.get("name"), 100) or None if webhook else None,
        pack_attachments(found) if (found := shown.get("attachments")) else (),
        pack_embeds(found) if (found := shown.get("embeds")) else (),
        pack_stickers(found) if (found := shown.get("stickers")) else (),
        count_reactions(found) if (found := raw.get("reactions")) else {},
        _parse_mentions(found) if (found := raw.get("mentions")) else (),
        _parse_reference(found) if (found := raw.get("reference")) else None,
    )


def measure_message(message: Message) -> int:
    """Return an upper bound of a message's size in bytes (four for each character that is not ASCII).

    Raises `MessageRejected` above `MESSAGE_BYTES_LIMIT`, and for text that cannot be encoded.
    """
    texts = (message.content, *message.attachments, *message.embeds, *message.stickers, *message.reactions)
    size = 8 * len(message.mentions) + 4 * len(message.reactions)
    try:
        for text in texts:
            size += len(text) if text.isascii() else len(text.encode()) and len(text) * 4
    except UnicodeEncodeError:
        raise MessageRejected(
            f"message {message.message_id} contains a lone surrogate (half a character)",
            kind="a lone surrogate (half a character)",
        ) from None
    if size > MESSAGE_BYTES_LIMIT:
        raise MessageRejected(
            f"message {message.message_id} is over {MESSAGE_BYTES_LIMIT // 1024} KiB",
            kind=f"over {MESSAGE_BYTES_LIMIT // 1024} KiB",
        )
    return size


def _read_id(raw: object) -> int:
    """Parse an id as `parse_snowflake` does, with a fast path for the usual format: up to 18 digits of text."""
    if type(raw) is str and len(raw) < 19 and raw.isdecimal() and raw.isascii():
        return int(raw)
    return parse_snowflake(raw)


def _parse_identity(raw: Json) -> tuple[int, int, Json]:
    try:
        message_id = _read_id(raw.get("id"))
    except BadInput as bad:
        raise MessageRejected(f"a message's id: {bad}", kind="no valid id") from None
    author = raw.get("author")
    if not isinstance(author, dict):
        raise MessageRejected(f"message {message_id} has no author", kind="no author")
    try:
        return message_id, _read_id(author.get("id")), author
    except BadInput as bad:
        raise MessageRejected(f"message {message_id}: its author's id: {bad}", kind="no valid author id") from None


def _check_time(raw: Json, message_id: int, now_ms: int) -> None:
    """Reject a message without a timestamp, or whose id carries an impossible time and so is not a snowflake.

    Ids counted up from 1, as other programs assign them, all fall on the first day of 2015, and random ones mostly into
    the future: both would appear in the wrong place of the timeline.
    """
    stated = _parse_time(raw.get("timestamp"))
    if stated is None:
        raise MessageRejected(f"message {message_id} has no valid timestamp", kind="no valid timestamp")
    carried_ms = ms_of(message_id)
    if carried_ms > now_ms + FUTURE_LIMIT_MS:
        raise MessageRejected(
            f"message {message_id} is not a snowflake: its time is in the future", kind="an id from the future"
        )
    is_counted = abs(message_id) < DAY_MS << TIME_SHIFT
    if is_counted and abs(carried_ms - unix_ms(stated)) > DAY_MS:
        raise MessageRejected(
            f"message {message_id} is not a snowflake: it carries {time_of(message_id):%Y-%m-%d}, "
            f"its timestamp is {stated:%Y-%m-%d}",
            kind="an id that is not a snowflake",
        )


def parse_type(raw: object) -> int:
    """Return Discord's number for the exporter's name; newer types are exported as a number in a string."""
    if isinstance(raw, str):
        known = _TYPES.get(raw)
        if known is not None:
            return known
        raw = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 6 else None
    return raw if isinstance(raw, int) and 0 <= raw <= MAX_INT else DEFAULT_TYPE


def _parse_time(raw: object) -> dt.datetime | None:
    """Return an aware datetime (UTC if the text has no zone); None if it is not a datetime."""
    if not isinstance(raw, str):
        return None
    try:
        parsed = dt.datetime.fromisoformat(raw)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)


def _parse_edited(raw: object) -> dt.datetime | None:
    """Return a UTC datetime in milliseconds: Cassandra stores no more, and edited times are compared."""
    parsed = _parse_time(raw)
    if parsed is None:
        return None
    try:
        parsed = parsed.astimezone(dt.UTC)
    except OverflowError:
        return None
    return parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)


def _find_shown(raw: Json) -> tuple[Json, int]:
    """Return the object with the content and attachments: of a forward without content, the forwarded message."""
    flags = raw.get("flags", 0)
    kept = flags if isinstance(flags, int) and 0 <= flags <= MAX_INT else 0
    if not raw.get("content") and isinstance(forwarded := raw.get("forwardedMessage"), dict):
        return forwarded, kept | FORWARD_FLAG
    return raw, kept


def _parse_mentions(raw: object) -> tuple[int, ...]:
    ids = []
    for user in raw if isinstance(raw, list) else ():
        try:
            ids.append(parse_snowflake(user.get("id") if isinstance(user, dict) else user))
        except BadInput:
            continue
    return tuple(dict.fromkeys(ids))


def _parse_reference(raw: object) -> tuple[int, int | None] | None:
    """Return the (channel, message) that a message replies to; the message is None if it was deleted."""
    if not isinstance(raw, dict):
        return None
    try:
        channel_id = parse_snowflake(raw.get("channelId"))
        target = raw.get("messageId")
        return channel_id, None if target in (None, "") else parse_snowflake(target)
    except BadInput:
        return None


def find_users(raw: Json) -> list[ExportedUser]:
    """Return the author and the mentioned users, without those that cannot be parsed."""
    mentions = raw.get("mentions")
    users = []
    for each in (raw.get("author"), *(mentions if isinstance(mentions, list) else ())):
        if isinstance(each, dict):
            try:
                users.append(parse_user(each))
            except BadInput:
                continue
    return users
