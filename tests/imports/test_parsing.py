"""Parsed messages and headers of an export, and the reasons for refusals."""

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

PARTS = (
    *make_raw(1),
    *make_user(1),
    *("reference", "flags", "forwardedMessage", "emoji", "count", "title", "url", "color", "thumbnail", "image"),
    *("images", "video", "fields", "value", "inline", "format", "sourceUrl", "fileName", "fileSizeBytes", "channelId"),
    *("messageId", "footer", "text", "width", "timestamp"),
)

NOW_MS = unix_ms(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
[ONE] = ids_from(MAY, 1)


def parse(raw: Any) -> Message:
    return parse_message(raw, channel_id=5, now_ms=NOW_MS)


def test_a_plain_message_has_only_its_set_columns() -> None:
    assert parse(make_raw(ONE)) == Message(5, ONE, VICTOR, f"message {ONE}")


def test_only_id_timestamp_and_author_id_are_needed() -> None:
    raw = {"id": str(ONE), "timestamp": MAY.isoformat(), "author": {"id": str(VICTOR)}}
    assert parse(raw) == Message(5, ONE, VICTOR)
    assert find_users(raw)[0].name == f"user {VICTOR}"


@pytest.mark.parametrize("value", [None, "", [], {}, 7, "odd", ["odd"], [None], [{}], {"odd": [1]}, True])
def test_keys_of_an_unexpected_type_lose_no_message(value: Any) -> None:
    optional = set(make_raw(ONE)) - {"id", "timestamp", "author"} | {"reference", "flags", "forwardedMessage"}
    message = parse(make_raw(ONE, **dict.fromkeys(optional, value)))
    assert (message.message_id, message.author_id) == (ONE, VICTOR)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("text", "not an object"),
        (None, "not an object"),
        (make_raw(ONE, id="abc"), "not an ID"),
        (make_raw(ONE, id=None), "not an ID"),
        (make_raw(ONE, id="9" * 30), "not an ID"),
        (make_raw(ONE, id=str(1 << 63)), "64 bits"),
        (make_raw(ONE, id="²"), "not an ID"),
        (make_raw(ONE, id="12"), "not a snowflake"),
        (make_raw(ONE, id=str((1 << 63) - 1)), "future"),
        (make_raw(ONE, author=VICTOR, timestamp=None), "timestamp"),
        (make_raw(ONE, timestamp="yesterday"), "timestamp"),
        ({**make_raw(ONE), "author": None}, "no author"),
        ({**make_raw(ONE), "author": {"id": "x"}}, "author"),
    ],
)
def test_a_message_without_a_usable_id_is_refused_with_the_reason(raw: Any, message: str) -> None:
    with pytest.raises(MessageRejected, match=message):
        parse(raw)


def test_times_before_2015_have_negative_ids() -> None:
    posted_at = dt.datetime(2013, 2, 3, tzinfo=dt.UTC)
    message_id = make_snowflake(unix_ms(posted_at))
    assert message_id < 0
    assert parse(make_raw(message_id)).posted_at == posted_at


def test_a_reply_keeps_its_target_even_when_it_is_deleted() -> None:
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


def test_parts_are_stored_in_discord_s_format() -> None:
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


def test_a_forward_shows_the_forwarded_message() -> None:
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


def test_characters_postgres_cannot_store_are_removed_from_names() -> None:
    header = parse_header({"id": "3", "name": "a\0b"}, {"id": "5", "name": "x" * 500, "topic": 7})
    assert (header.guild_name, len(header.channel_name), header.topic) == ("ab", 200, "")


@pytest.mark.parametrize("channel", [None, {}, {"name": "pier"}, {"id": None}, {"id": ""}, {"id": "x"}, []])
def test_a_channel_without_an_id_is_refused(channel: Any) -> None:
    with pytest.raises(ExportRejected, match="channel"):
        parse_header({"id": "3", "name": "G"}, channel)


# --- Malformed input ----------------------------------------------------------------------


def nest(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "color", ["#" + "F" * 6_000, "#1234567", "#GG0000", -1, 1 << 24, 1 << 63, 0.5, ["#FFFFFF"], True * 10**18]
)
def test_an_invalid_colour_is_omitted(color: Any) -> None:
    message = parse(make_raw(ONE, embeds=[{"title": "T", "color": color}]))
    assert json.loads(message.embeds[0]) == {"title": "T"}


@pytest.mark.parametrize("depth", [1, 900, 3_000])
def test_nested_values_of_a_part_are_omitted(depth: int) -> None:
    deep = nest(depth)
    message = parse(
        make_raw(
            ONE,
            attachments=[{"id": deep, "url": "https://f.example/a.png"}],
            embeds=[{"title": deep, "footer": {"text": deep}, "fields": [{"name": deep, "value": "v"}], "color": deep}],
            stickers=[{"id": "2", "name": "Peek", "format": deep}],
            reactions=[{"emoji": {"id": deep, "name": "ship"}, "count": 2}, {"emoji": {"name": deep}}],
            mentions=deep,
            reference=deep,
        )
    )
    assert json.loads(message.attachments[0]) == {"url": "https://f.example/a.png"}
    assert json.loads(message.embeds[0]) == {"fields": [{"value": "v"}]}
    assert json.loads(message.stickers[0]) == {"id": "2", "name": "Peek"}
    assert dict(message.reactions) == {"ship": 2}
    assert measure_message(message)


@pytest.mark.parametrize(
    "keys",
    [
        {"content": "half \ud83d a smile"},
        {"embeds": [{"title": "\ud800"}]},
        {"attachments": [{"fileName": "\udcff"}]},
        {"reactions": [{"emoji": {"name": "\udfff"}, "count": 1}]},
    ],
)
def test_a_lone_surrogate_is_refused_where_it_would_be_lost(keys: dict[str, Any]) -> None:
    with pytest.raises(MessageRejected, match="half a character") as refused:
        measure_message(parse(make_raw(ONE, **keys)))
    assert str(ONE) in str(refused.value)
    assert str(ONE) not in refused.value.kind


def test_a_lone_surrogate_in_a_name_is_replaced() -> None:
    raw = make_raw(ONE) | {"author": make_user(VICTOR, name="vic\ud83dtor", isBot=True)}
    assert parse(raw).author_name == "vic\ufffdtor"
    assert find_users(raw)[0].name == "vic\ufffdtor"
    header = parse_header({"id": "3", "name": "\ud800"}, {"id": "5", "name": "\udfff", "type": nest(3_000)})
    assert (header.guild_name, header.channel_name, header.kind) == ("\ufffd", "\ufffd", "text")


@pytest.mark.parametrize(
    "keys",
    [
        {"reactions": [{"emoji": {"name": f"{number:06d}" + "x" * 100}, "count": 1} for number in range(6_000)]},
        {"mentions": [{"id": str(number)} for number in range(70_000)]},
        {"reactions": [{"emoji": {"name": "x" * 600_000}, "count": 1}]},
    ],
)
def test_reactions_and_mentions_count_towards_the_limit(keys: dict[str, Any]) -> None:
    with pytest.raises(MessageRejected, match="512 KiB"):
        measure_message(parse(make_raw(ONE, **keys)))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20)
    | st.sampled_from(["\ud800", "9" * 6_000, "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", str(1 << 62)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(PARTS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(PARTS), json_values, max_size=6))
def test_any_message_is_either_accepted_or_refused(keys: dict[str, Any]) -> None:
    raw = {**make_raw(ONE), **keys}
    try:
        message = parse(raw)
        measure_message(message)
    except MessageRejected:
        return
    texts = (*message.attachments, *message.embeds, *message.stickers, *message.reactions, message.author_name or "")
    for text in (message.content, *texts):
        text.encode()
    for part in (*message.attachments, *message.embeds, *message.stickers):
        json.loads(part)
    assert all(-(1 << 63) <= user < 1 << 63 for user in (message.author_id, *message.mentions))
    assert all(0 < count < 1 << 31 for count in message.reactions.values())
    for user in find_users(raw):
        f"{user.name}{user.display_name}".encode()


# --- Channels without an id ---------------------------------------------------------------


def test_an_id_is_found_in_the_exporter_s_file_name() -> None:
    header = parse_header(None, {"name": "pier"}, derive_from="Harbour - pier [1017966828372373567] [part 2].json")
    assert header.channel_id == 1017966828372373567


@pytest.mark.parametrize("file_name", ["pier.json", "2024-05-03.json", "9" * 19 + ".json", "1" * 30 + ".json"])
def test_an_id_is_derived_from_a_unique_channel_name(file_name: str) -> None:
    made = parse_header({"id": "3", "name": "G"}, {"name": "pier", "topic": "a"}, derive_from=file_name).channel_id
    assert 0 < made < make_snowflake(unix_ms(dt.datetime(2015, 1, 2, tzinfo=dt.UTC)))
    again = parse_header({"id": "3", "name": "H"}, {"id": "", "name": "pier"}, derive_from="other.json")
    assert again.channel_id == made
    others = [
        parse_header({"id": "4"}, {"name": "pier"}, derive_from=file_name),
        parse_header({"id": "3"}, {"name": "quay"}, derive_from=file_name),
        parse_header({"id": "3"}, {"name": "pier", "category": "Lobby"}, derive_from=file_name),
    ]
    assert len({made, *(header.channel_id for header in others)}) == 4


def test_a_channel_without_a_name_gets_no_id() -> None:
    with pytest.raises(ExportRejected, match="no id"):
        parse_header({"id": "3"}, {"name": " "}, derive_from="pier.json")
