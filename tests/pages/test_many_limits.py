"""Limits that were just saved are on the page that follows, however many there are before them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.models import PurgeLimits
from moderation.operations.access.limits import LIMITS_PER_PAGE
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]

PATH = "/roles/limits/"


@pytest.fixture
def guild_ids() -> list[int]:
    """More guilds than have a line on a page."""
    channels = [make_channel(guild=f"Harbour {number}") for number in range(LIMITS_PER_PAGE + 2)]
    return [channel.guild_id for channel in channels if channel.guild_id is not None]


@pytest.fixture
def client(guild_ids: list[int], sign_in: SignIn) -> Client:
    """A browser of an administrator of these guilds, all but the last of which have limits."""
    ada = make_user("ada", group=None)
    for guild_id in guild_ids:
        give(ada, Role.ADMIN, guild_id=guild_id)
    PurgeLimits.objects.bulk_create(
        PurgeLimits(guild_id=guild_id, role=Role.MODERATOR, purges_per_hour=5) for guild_id in guild_ids[:-1]
    )
    return sign_in(ada)


def save(client: Client, guild_id: int, **limits: str) -> tuple[str, str]:
    """Save limits; return the URL that the answer leads to, and its page."""
    answer = client.post(PATH, {"server": str(guild_id), "role": "moderator", **limits})
    assert answer.status_code == 302
    return answer["Location"], client.get(answer["Location"].partition("#")[0]).content.decode()


def lines_of(page: str) -> list[int]:
    return [int(found) for found in re.findall(r'<li [^>]*id="limits-(\d+)"', page)]


def pk_of(guild_id: int) -> int:
    return PurgeLimits.objects.get(guild_id=guild_id).pk


def test_new_limits_are_shown_with_those_before_them(client: Client, guild_ids: list[int]) -> None:
    url, page = save(client, guild_ids[-1], purges_per_hour="7")
    assert url.endswith(f"#limits-{pk_of(guild_ids[-1])}")
    assert lines_of(page) == [pk_of(guild_id) for guild_id in guild_ids[2:]]
    assert "Limits saved." in page
    assert f'href="{PATH}">First page</a>' in page


def test_changed_limits_are_shown_where_they_are(client: Client, guild_ids: list[int]) -> None:
    for guild_id in (guild_ids[0], guild_ids[LIMITS_PER_PAGE - 1]):
        _url, page = save(client, guild_id, purges_per_hour="7")
        assert lines_of(page) == [pk_of(each) for each in guild_ids[:LIMITS_PER_PAGE]]
    _url, page = save(client, guild_ids[LIMITS_PER_PAGE], purges_per_hour="7")
    assert lines_of(page)[-1] == pk_of(guild_ids[LIMITS_PER_PAGE])


def test_after_limits_were_removed_the_first_page_is_shown(client: Client, guild_ids: list[int]) -> None:
    url, page = save(client, guild_ids[1])
    assert url == f"{PATH}?saved=1#current"
    assert lines_of(page) == [pk_of(guild_id) for guild_id in (guild_ids[0], *guild_ids[2 : LIMITS_PER_PAGE + 1])]
