"""Rows of a timeline: groups of one author's messages, initials, and gaps in one line for each purge."""

from __future__ import annotations

import datetime as dt

from chatstore.domain.messages import Message, Page
from chatstore.domain.snowflakes import make_snowflake, unix_ms
from chatstore.operations.gateway.timeline import Timeline
from moderation.operations.lookup.gaps import Gap
from moderation.views.rows import MessageRow, Writer, collapse_gaps, lay_out

NOON = dt.datetime(2024, 3, 11, 12, tzinfo=dt.UTC)


def message(minutes: int, author: int = 1, *, reply_to: int | None = None) -> Message:
    message_id = make_snowflake(unix_ms(NOON + dt.timedelta(minutes=minutes)))
    return Message(5, message_id, author, "x", reference=None if reply_to is None else (5, reply_to))


def rows_of(*messages: Message, gaps: dict[int | None, list[Gap]] | None = None) -> list[MessageRow]:
    return lay_out(Timeline(Page(messages[::-1], None, None), messages, {}), collapse_gaps(gaps or {}))


def gap(purge_id: int, count: int) -> Gap:
    return Gap(purge_id=purge_id, moderator="Mona", reason="Raid", at=NOON, count=count)


def test_messages_of_one_author_within_seven_minutes_form_a_group() -> None:
    rows = rows_of(message(0), message(6), message(14), message(15, author=2), message(16))
    assert [row.continued for row in rows] == [False, True, False, False, False]


def test_a_reply_begins_a_new_group() -> None:
    first = message(0)
    rows = rows_of(first, message(1, reply_to=first.message_id), message(2))
    assert [row.continued for row in rows] == [False, False, True]


def test_the_gaps_of_a_purge_are_one_line_at_the_newest_of_them() -> None:
    lines = collapse_gaps({10: [gap(1, 3)], 20: [gap(1, 4), gap(2, 9)], None: [gap(1, 5)]})
    assert [(line.gap.purge_id, line.total, line.is_collapsed, line.is_part) for line in lines[20]] == [
        (1, 4, False, True),
        (2, 9, False, False),
        (2, 9, False, True),
    ]
    assert [(line.total, line.is_collapsed, line.is_part) for line in lines[None]] == [
        (12, True, False),
        (5, False, True),
    ]
    assert [line.is_part for line in lines[10]] == [True]


def test_the_collapsed_gaps_add_up() -> None:
    found: dict[int | None, list[Gap]] = {n: [gap(n % 3, n)] for n in range(1, 40)}
    lines = [line for here in collapse_gaps(found).values() for line in here]
    assert sum(line.total for line in lines if line.is_collapsed) == sum(range(1, 40))
    assert sum(line.total for line in lines if line.is_part) == sum(range(1, 40))


def test_a_collapsed_gap_does_not_break_a_group_but_its_line_does() -> None:
    messages = [message(n) for n in range(3)]
    gaps: dict[int | None, list[Gap]] = {messages[1].message_id: [gap(1, 3)], messages[2].message_id: [gap(1, 4)]}
    assert [row.continued for row in rows_of(*messages, gaps=gaps)] == [False, True, False]


def test_initials_are_those_of_the_first_two_words() -> None:
    names = {"Victor": "V", "mona lisa": "ML", "~ * ~": "?", "  a  b c": "AB", "日本": "日", "1st user": "1U", "": "?"}
    for name, initials in names.items():
        assert Writer(1, name, is_bot=False, is_webhook=False).initials == initials
