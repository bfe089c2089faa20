"""Users and channels that read the same in a list are told apart: by the minute of the account, or else by the ID."""

from __future__ import annotations

import pytest

from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser, Guild
from moderation.views.picks import describe_rows

pytestmark = pytest.mark.unit

MARCH_2024_MS = 1_710_115_200_000


def account(after_ms: int, *, handle: str = "victor") -> ChatUser:
    return ChatUser(pk=make_snowflake(MARCH_2024_MS + after_ms), name=handle, display_name="Victor")


def notes_of(*accounts: ChatUser) -> list[str]:
    return [pick.note for pick in describe_rows(accounts)]


def test_different_handles_need_nothing_else() -> None:
    assert notes_of(account(0), account(7, handle="victor.deals")) == [
        "@victor · account created 11\u00a0Mar\u00a02024",
        "@victor.deals · account created 11\u00a0Mar\u00a02024",
    ]


def test_accounts_of_one_day_are_told_apart_by_the_minute() -> None:
    assert notes_of(account(0), account(5 * MINUTE_MS), account(0, handle="wilma")) == [
        "@victor · account created 11\u00a0Mar\u00a02024,\u00a000:00",
        "@victor · account created 11\u00a0Mar\u00a02024,\u00a000:05",
        "@wilma · account created 11\u00a0Mar\u00a02024",
    ]


def test_accounts_of_one_minute_are_told_apart_by_their_ids() -> None:
    first, second, other = account(0), account(1), account(5 * MINUTE_MS)
    assert notes_of(first, second, other) == [
        f"@victor · account created 11\u00a0Mar\u00a02024,\u00a000:00 · ID {first.pk}",
        f"@victor · account created 11\u00a0Mar\u00a02024,\u00a000:00 · ID {second.pk}",
        "@victor · account created 11\u00a0Mar\u00a02024,\u00a000:05",
    ]


def test_channels_of_guilds_of_the_same_name_are_told_apart_by_their_ids() -> None:
    channels = [
        Channel(pk=number, name="general", category=category, guild=Guild(pk=number, name="Harbour"))
        for number, category in ((5, ""), (6, ""), (7, "Docks"))
    ]
    assert [pick.note for pick in describe_rows(channels)] == ["Harbour · ID 5", "Harbour · ID 6", "Harbour · Docks"]
