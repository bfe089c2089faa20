"""Invalid gateway input raises `BadInput` before any server is queried, and no driver error reaches the gateway."""

from __future__ import annotations

import datetime as dt
import functools
import json
from typing import Any, cast

import cassandra
import django.db
import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput, StoreUnavailable, WriteRefused
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import first_id_at
from chatstore.operations.gateway import messages
from tests.chatstore.channels import VICTOR, now_ms

pytestmark = pytest.mark.unit

CHANNEL = 77
HALF = "\ud83d"
JUNK: tuple[Any, ...] = (
    None,
    HALF,
    2**31,
    2**63,
    -(2**70),
    10**6_000,
    1.5,
    float("nan"),
    True,
    b"x",
    "x",
    [None],
    [2**64],
    {"x": -1},
    {},
)
WITHOUT_ZONE = dt.datetime(2024, 3, 1, tzinfo=dt.UTC).replace(tzinfo=None)
POSTED = first_id_at(now_ms() - MINUTE_MS)


def embed(**parts: Any) -> str:
    return json.dumps(parts)


def post(**columns: Any) -> None:
    given: dict[str, Any] = {"author_id": VICTOR, "content": "hello"} | columns
    messages.post_message(given.pop("channel_id", CHANNEL), **given)


@pytest.mark.parametrize(
    ("column", "values"),
    {
        "channel_id": (None, HALF, "7", 2**63, -(2**63) - 1, 10**6_000, 1.5, True),
        "author_id": (None, HALF, "7", 2**63, 10**6_000),
        "message_id": (HALF, "7", 2**63, 10**6_000, 2**62),
        "content": (None, HALF, b"hello", 5, "x" * 4_001),
        "type": (None, "19", -1, 2**31, 10**6_000),
        "flags": (None, "4", -1, 2**31),
        "webhook_id": (HALF, 2**63, "7"),
        "author_name": (HALF, 5, "x" * 81),
        "attachments": (
            None,
            "{}",
            [None],
            ["{"],
            ["[]"],
            [HALF],
            ['{"filename": "\\ud83d"}'],
            [embed(x="y" * 262_144)],
        ),
        "stickers": (None, ["7"], ["[" * 100_000], ['{"id": ' + "9" * 6_000 + "}"]),
        "embeds": (
            None,
            ["{}"] * 11,
            [embed(title="x" * 6_001)],
            [embed(title="x" * 2_000, description="y" * 2_000, footer={"text": "z" * 2_001})],
            [embed(author={"name": "x" * 3_000}), embed(fields=[{"name": "y" * 1_000, "value": "z" * 2_001}])],
        ),
        "reactions": (None, [], {HALF: 1}, {"x": None}, {"x": -1}, {"x": 2**31}, {5: 1}, {"x" * 81: 1}),
        "mentions": (None, "12", [None], [2**63], ["12"], [5] * 40_000),
        "reference": (5, (5,), (5, 6, 7), (None, 5), (2**63, None), (5, "6")),
        "pinned": (True,),
        "edited_at": (dt.datetime(2024, 3, 1, tzinfo=dt.UTC),),
    }.items(),
)
def test_a_post_with_an_invalid_value_is_refused(column: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(BadInput):
            post(**{column: value})


@given(
    st.dictionaries(st.sampled_from(sorted(messages.PostColumns.__annotations__)), st.sampled_from(JUNK), max_size=3)
)
def test_a_post_with_a_non_text_content_is_refused_as_invalid_input(columns: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        post(content=None, **columns)


def test_no_action_accepts_an_invalid_id() -> None:
    actions = (
        messages.withdraw_message,
        messages.pin_message,
        messages.unpin_message,
        functools.partial(messages.edit_message, content="x"),
    )
    for value in (value for value in JUNK if value != 2**31):
        for key in ((value, POSTED, VICTOR), (CHANNEL, value, VICTOR), (CHANNEL, POSTED, value)):
            channel_id, message_id, actor = cast(tuple[int, int, int], key)
            for action in actions:
                with pytest.raises(BadInput):
                    action(channel_id, message_id, actor=actor)


@pytest.mark.parametrize("content", [None, HALF, b"x", "x" * 4_001])
def test_an_edit_to_a_text_that_cannot_be_stored_is_refused(content: Any) -> None:
    with pytest.raises(BadInput):
        messages.edit_message(CHANNEL, POSTED, actor=VICTOR, content=content)


@pytest.mark.parametrize(
    "edited_at",
    [5, "2024-03-01", WITHOUT_ZONE, dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=1)))],
)
def test_an_edit_at_an_unstorable_time_is_refused(edited_at: Any) -> None:
    with pytest.raises(BadInput):
        messages.edit_message(CHANNEL, POSTED, actor=VICTOR, content="x", edited_at=edited_at)


def test_the_limits_are_discords_unless_they_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MESSAGE_MAX_CHARACTERS", 10)
    with pytest.raises(BadInput, match="content may have at most 10 characters, not 11"):
        post(content="x" * 11)


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (django.db.OperationalError("the connection is closed"), StoreUnavailable),
        (django.db.InterfaceError("connection already closed"), StoreUnavailable),
        (cassandra.InvalidRequest("Expected 8 bytes"), WriteRefused),
        (cassandra.Unauthorized("no"), WriteRefused),
    ],
)
def test_a_driver_error_is_converted_to_ours(error: Exception, ours: type[Exception]) -> None:
    @messages.translate_errors
    def ask() -> None:
        raise error

    with pytest.raises(ours):
        ask()
