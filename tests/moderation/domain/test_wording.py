"""A selection is summarized in one sentence."""

import pytest
from django.utils import timezone

from chatstore.domain.snowflakes import first_id_at
from moderation.domain.filters import (
    All,
    AnyOf,
    AnyWord,
    Author,
    Content,
    FirstSeenWithin,
    FromBot,
    Has,
    JoinedWithin,
    Not,
    Pattern,
    Pinned,
    ReplyTo,
    Similar,
    Since,
    Words,
    YoungAccount,
)
from moderation.domain.selection import Selection
from moderation.presentation.wording import Scope, format_datetime, format_scope, summarize_selection

MAY = Since(first_id_at(1_714_521_600_000))
VICTOR = Author((7,))
LONG = "a" * 90


@pytest.mark.parametrize(
    ("selection", "summary"),
    [
        (
            Selection(channel_ids=(1,), where=All((Author((7, 8)), MAY)), with_pinned=True),
            "all messages by Victor or user 8 in #general since 1 May 2024, including pinned",
        ),
        (
            Selection(channel_ids=(1,), where=Author((7, 8, 9))),
            "all messages by Victor, user 8 or user 9 in #general, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=All((Has(Content.LINK), Not(FromBot()), Words("nitro")))),
            "all messages in #general containing a link, not by bots and containing the word “nitro”, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=All((VICTOR, MAY, Has(Content.LINK)))),
            "all messages by Victor in #general since 1 May 2024 containing a link, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=All((AnyOf((Words("free nitro"), FromBot())), Not(VICTOR)))),
            "all messages in #general (containing the words “free nitro” or by bots) and not by Victor, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=All((Pattern("c"), AnyOf((Pattern("a"), Pattern("b"))), Not(FromBot())))),
            "all messages in #general matching /c/ and (matching /a/ or matching /b/) and not by bots, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=AnyWord("nitro")),
            "all messages in #general containing the word “nitro”, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=AnyOf((Pattern("a+"), ReplyTo(5)))),
            "all messages in #general matching /a+/ or replying to message 5, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=VICTOR, except_ids=(5, 6)),
            "all messages by Victor in #general, except pinned, 2 excluded",
        ),
        (
            Selection(channel_ids=(1,), where=All((Author(tuple(range(50))), Not(Author((1, 2, 3, 4)))))),
            "all messages by 50 users in #general not by any of 4 users, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=All((YoungAccount(7), Similar("a\n b"))), with_pinned=True),
            (
                "all messages in #general posted when the account was younger than 7 days and with nearly the same "
                "text as “a b”, including pinned"
            ),
        ),
        (
            Selection(channel_ids=(1,), where=All((YoungAccount(7), JoinedWithin(10))), with_pinned=True),
            (
                "all messages in #general posted when the account was younger than 7 days and posted within 10 minutes "
                "of joining, including pinned"
            ),
        ),
        (
            Selection(channel_ids=(1,), where=All((JoinedWithin(10), FirstSeenWithin(24))), with_pinned=True),
            (
                "all messages in #general posted within 10 minutes of joining and posted within 24 hours of the "
                "author’s first message anywhere, including pinned"
            ),
        ),
        (
            Selection(channel_ids=(1,), where=All((Author((7, 8)), YoungAccount(7), FromBot())), with_pinned=True),
            (
                "all messages by Victor or user 8, by bots in #general posted when the account was younger than 7 "
                "days, including pinned"
            ),
        ),
        (
            Selection(channel_ids=(1,), where=Not(FirstSeenWithin(1)), with_pinned=True),
            (
                "all messages in #general not posted within 1 hour of the author’s first message anywhere, including "
                "pinned"
            ),
        ),
        (
            Selection(channel_ids=(1,), where=Not(JoinedWithin(1)), with_pinned=True),
            "all messages in #general not posted within 1 minute of joining, including pinned",
        ),
        (
            Selection(channel_ids=(1,), where=Not(Similar(LONG))),
            f"all messages in #general not with nearly the same text as “{LONG[:80]}…”, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=AnyWord("free nitro")),
            "all messages in #general containing any of the words “free nitro”, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=Words('"free  10,000"')),
            "all messages in #general containing the phrase “free 10,000”, except pinned",
        ),
        (
            Selection(channel_ids=(1,), where=All((VICTOR, Pinned())), with_pinned=True),
            "all messages by Victor in #general that are pinned",
        ),
        (Selection(channel_ids=(1,), everything=True), "the whole channel #general"),
        (Selection(channel_ids=(1,), message_ids=(1, 2, 3), except_ids=(3,)), "2 selected messages in #general"),
    ],
)
def test_a_selection_is_summarized(selection: Selection, summary: str) -> None:
    assert summarize_selection(selection, scope=Scope(channels=["#general"]), authors={7: "Victor"}) == summary


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (Scope(), "in all channels"),
        (Scope(guild="Gophers"), "in all channels of Gophers"),
        (Scope(channels=["#a"]), "in #a"),
        (Scope(channels=["#a", "#b"]), "in #a and #b"),
        (Scope(channels=["#a", "#b", "#c"]), "in #a, #b and #c"),
        (Scope(channels=["#a"] * 1_204), "in 1,204 channels"),
        (Scope(kept=["#a"]), "in all channels but #a"),
        (Scope(guild="Gophers", kept=["#a", "#b"]), "in all channels of Gophers but #a and #b"),
        (Scope(guild="Gophers", kept=["#a"] * 4), "in all channels of Gophers but 4 channels"),
    ],
)
def test_a_scope_is_formatted(scope: Scope, text: str) -> None:
    assert format_scope(scope) == text


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "1 May 2024"),
        ("Europe/Berlin", "1 May 2024, 02:00 (00:00 UTC)"),
        ("America/New_York", "30 Apr 2024, 20:00 (1 May 2024, 00:00 UTC)"),
    ],
)
def test_times_are_in_the_time_zone_of_the_viewer(zone: str, text: str) -> None:
    with timezone.override(zone):
        assert format_datetime(MAY.message_id) == text
