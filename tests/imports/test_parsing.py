"""What a message or a header of an export says, and what is refused with which words."""

import datetime as dt
import json
from typing import Any

import pytest

from chatstore.domain.discord_export import (
    FORWARD_FLAG,
    ExportRejected,
    MessageRejected,
    find_users,
    measure_message,
    parse_header,
    parse_message,
)
from chatstore.domain.messages import REPLY_TYPE, Message
from chatstore.domain.snowflakes import make_snowflake, unix_ms
from tests.imports.exports import MAY, VICTOR, WANDA, ids_from, make_raw, make_user

pytestmark = pytest.mark.unit

NOW_MS = unix_ms(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
[ONE] = ids_from(MAY, 1)


def parse(raw: Any) -> Message:
    return parse_message(raw, channel_id=5, now_ms=NOW_MS)


def test_a_plain_message_has_only_what_is_set() -> None:
    assert parse(make_raw(ONE)) == Message(5, ONE, VICTOR, f"message {ONE}")


def test_only_id_timestamp_and_author_id_are_needed() -> None:
    raw = {"id": str(ONE), "timestamp": MAY.isoformat(), "author": {"id": str(VICTOR)}}
    assert parse(raw) == Message(5, ONE, VICTOR)
    assert find_users(raw)[0].name == f"user {VICTOR}"


@pytest.mark.parametrize("value", [None, "", [], {}, 7, "odd", ["odd"], [None], [{}], {"odd": [1]}, True])
def test_keys_of_another_kind_lose_no_message(value: Any) -> None:
    optional = set(make_raw(ONE)) - {"id", "timestamp", "author"} | {"reference", "flags", "forwardedMessage"}
    message = parse(make_raw(ONE, **dict.fromkeys(optional, value)))
    assert (message.message_id, message.author_id) == (ONE, VICTOR)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("text", "no object"),
        (None, "no object"),
        (make_raw(ONE, id="abc"), "not an id"),
        (make_raw(ONE, id=None), "not an id"),
        (make_raw(ONE, id="9" * 30), "not an id"),
        (make_raw(ONE, id=str(1 << 63)), "64 bits"),
        (make_raw(ONE, id="²"), "not an id"),
        (make_raw(ONE, id="12"), "no snowflake"),
        (make_raw(ONE, id=str((1 << 63) - 1)), "future"),
        (make_raw(ONE, author=VICTOR, timestamp=None), "timestamp"),
        (make_raw(ONE, timestamp="yesterday"), "timestamp"),
        ({**make_raw(ONE), "author": None}, "no author"),
        ({**make_raw(ONE), "author": {"id": "x"}}, "author"),
    ],
)
def test_what_cannot_be_placed_is_refused_with_the_reason(raw: Any, words: str) -> None:
    with pytest.raises(MessageRejected, match=words):
        parse(raw)


def test_times_before_2015_have_negative_ids() -> None:
    moment = dt.datetime(2013, 2, 3, tzinfo=dt.UTC)
    message_id = make_snowflake(unix_ms(moment))
    assert message_id < 0
    assert parse(make_raw(message_id)).posted_at == moment


def test_a_reply_keeps_its_target_even_when_that_is_gone() -> None:
    reference = {"type": "Default", "messageId": str(ONE - 1), "channelId": "9", "guildId": "1"}
    message = parse(make_raw(ONE, type="Reply", reference=reference))
    assert (message.type, message.reference) == (REPLY_TYPE, (9, ONE - 1))
    gone = parse(make_raw(ONE, type="Reply", reference={**reference, "messageId": None}))
    assert gone.reference == (9, None)


def test_newer_types_come_as_numbers_and_unknown_ones_as_default() -> None:
    assert parse(make_raw(ONE, type="20")).type == 20
    assert parse(make_raw(ONE, type="GuildMemberJoin")).type == 7
    assert parse(make_raw(ONE, type="SomethingNew")).type == 0


def test_edited_times_are_utc_milliseconds() -> None:
    message = parse(make_raw(ONE, timestampEdited="2024-05-03T14:30:00.123456+02:00"))
    assert message.edited_at == dt.datetime(2024, 5, 3, 12, 30, 0, 123_000, tzinfo=dt.UTC)


def test_a_webhook_keeps_the_name_of_the_message() -> None:
    author = make_user(44, name="Build status", isBot=True)
    message = parse({**make_raw(ONE), "author": author})
    assert (message.webhook_id, message.author_name) == (44, "Build status")
    bot = make_user(45, isBot=True, discriminator="8812")
    assert parse({**make_raw(ONE), "author": bot}).webhook_id is None


def test_parts_take_discords_own_shape() -> None:
    raw = make_raw(
        ONE,
        attachments=[{"id": "1", "url": "https://f.example/a.png", "fileName": "a.png", "fileSizeBytes": 12}],
        stickers=[{"id": "2", "name": "Peek", "format": "Lottie", "sourceUrl": "https://f.example/2.json"}],
        embeds=[
            {
                "title": "T",
                "url": None,
                "color": "#1E2327",
                "thumbnail": {"url": "https://proxy.example/x", "canonicalUrl": "https://x.example", "width": 1.5},
                "fields": [{"name": "n", "value": "v", "isInline": True}],
                "images": [],
            }
        ],
        reactions=[
            {"emoji": {"id": "", "name": "👍"}, "count": 3, "users": []},
            {"emoji": {"id": "77", "name": "ship"}, "count": 2},
        ],
        mentions=[make_user(WANDA), make_user(WANDA)],
    )
    message = parse(raw)
    assert [json.loads(each) for each in message.attachments] == [
        {"id": "1", "filename": "a.png", "size": 12, "url": "https://f.example/a.png"}
    ]
    assert json.loads(message.stickers[0])["format_type"] == 3
    embed = json.loads(message.embeds[0])
    assert embed["color"] == 0x1E2327
    assert embed["thumbnail"] == {"proxy_url": "https://proxy.example/x", "url": "https://x.example", "width": 1.5}
    assert embed["fields"] == [{"name": "n", "value": "v", "inline": True}]
    assert dict(message.reactions) == {"👍": 3, "ship:77": 2}
    assert list(message.mentions) == [WANDA]


def test_a_forward_shows_what_it_passes_on() -> None:
    forwarded = {"timestamp": MAY.isoformat(), "content": "from elsewhere", "attachments": []}
    message = parse(make_raw(ONE, content="", forwardedMessage=forwarded))
    assert message.content == "from elsewhere"
    assert message.flags & FORWARD_FLAG


def test_a_message_too_large_for_a_quarantine_chunk_is_refused() -> None:
    assert measure_message(parse(make_raw(ONE, content="x" * 100_000))) == 100_000
    with pytest.raises(MessageRejected, match="512 KiB"):
        measure_message(parse(make_raw(ONE, content="x" * 600_000)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("GuildTextChat", "text"),
        ("GuildPublicThread", "thread"),
        ("GuildVoiceChat", "voice"),
        ("GuildNews", "news"),
        ("DirectTextChat", "direct"),
        ("DirectGroupTextChat", "direct"),
        (None, "text"),
    ],
)
def test_channel_types_become_kinds(kind: str | None, expected: str) -> None:
    header = parse_header({"id": "3", "name": "G"}, {"id": "5", "type": kind, "name": "pier"})
    assert (header.channel_id, header.kind) == (5, expected)


def test_direct_messages_have_no_guild() -> None:
    header = parse_header({"id": "0", "name": "Direct Messages"}, {"id": "5", "type": "DirectTextChat"})
    assert (header.guild_id, header.kind, header.channel_name) == (None, "direct", "channel 5")


def test_names_lose_what_postgres_cannot_keep() -> None:
    header = parse_header({"id": "3", "name": "a\0b"}, {"id": "5", "name": "x" * 500, "topic": 7})
    assert (header.guild_name, len(header.channel_name), header.topic) == ("ab", 200, "")


@pytest.mark.parametrize("channel", [None, {}, {"name": "pier"}, {"id": None}, {"id": ""}, {"id": "x"}, []])
def test_a_channel_without_an_id_is_refused(channel: Any) -> None:
    with pytest.raises(ExportRejected, match="channel"):
        parse_header({"id": "3", "name": "G"}, channel)
