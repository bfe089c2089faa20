"""A preview says how many of its authors have old accounts: those are rarely the ones that a raid is by."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.milliseconds import DAY_MS, YEAR_MS
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel
from chatstore.models.users import User
from tests.moderation.channels import VICTOR, everything, make_channel, now_ms, old_ids, preview, purge_now, write
from tests.pages.reading import read_html

SignIn = Callable[[User], Client]

OLD = re.compile(r'<dt>Accounts over a year old</dt>\s*<dd>\s*(?:<span class="chip (warning)">)?(\d+)\b')


def fill_channel(*ages_ms: int, others: tuple[int, ...] = ()) -> Channel:
    """Write a message by an account of each age, and one by each of the others."""
    channel = make_channel()
    authors = [make_snowflake(now_ms() - age) + number for number, age in enumerate(ages_ms)] + [*others]
    for message_id, author in zip(old_ids(len(authors)), authors, strict=True):
        write(channel, [message_id], author=author)
    return channel


def shown(client: Client, user: User, channel: Channel) -> list[tuple[str, str]]:
    return OLD.findall(read_html(client, f"/purges/{preview(user, everything(channel)).pk}/"))


@pytest.mark.parametrize(
    ("ages_ms", "count"),
    [
        ((2 * YEAR_MS, 366 * DAY_MS, 364 * DAY_MS, DAY_MS), ("warning", "2")),
        # Who has to approve a raid looks for it.
        ((2 * DAY_MS, DAY_MS), ("", "0")),
    ],
)
def test_old_accounts_are_counted(
    ages_ms: tuple[int, ...], count: tuple[str, str], mona: User, sign_in: SignIn
) -> None:
    assert shown(sign_in(mona), mona, fill_channel(*ages_ms)) == [count]


def test_no_number_is_shown_unless_the_age_of_all_is_known(mona: User, sign_in: SignIn) -> None:
    assert shown(sign_in(mona), mona, fill_channel(2 * YEAR_MS, others=(VICTOR,))) == []


def test_it_is_not_on_the_page_of_a_purge(mona: User, sign_in: SignIn) -> None:
    purge = purge_now(mona, everything(fill_channel(2 * YEAR_MS)))
    assert not OLD.search(read_html(sign_in(mona), f"/purges/{purge.pk}/"))
