"""Notices of raids: the newest ones, one for all others, and in the admin too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.domain.runs import Severity
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.findings.records import Problem, open_finding
from moderation.operations.raids.detection import MAX_NOTICES, RAID
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, now_ms
from tests.moderation.raids import forget_raids
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_raids() -> Iterator[None]:
    forget_raids()
    yield
    forget_raids()


def report_raids(count: int) -> list[Channel]:
    """Report a raid in each of some new channels of a new guild."""
    first = make_channel(guild="Gophers")
    channels = [first, *(make_channel(guild=first.guild) for _ in range(count - 1))]
    for channel in channels:
        open_finding(RAID, str(channel.pk), Problem(Severity.CRITICAL, f"Raid {channel.pk}", {"since_ms": now_ms()}))
    return channels


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (0, ""),
        (1, "1 more possible raid; its channel is marked"),
        (2, "2 more possible raids; their channels are marked"),
    ],
)
def test_raids_beyond_the_newest_are_counted(more: int, text: str, sign_in: SignIn) -> None:
    channels = report_raids(MAX_NOTICES + more)
    make_channel(guild="Elsewhere")
    gina = make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=channels[0].guild_id)
    html = read_page(sign_in(gina), "/preferences/")
    assert html.count("page-notice critical") == MAX_NOTICES + (more > 0)
    assert text in html
    assert ("more possible raid" in html) == (more > 0)


def test_a_raid_is_on_pages_of_the_admin_too(ada: User, sign_in: SignIn) -> None:
    (channel,) = report_raids(1)
    for path in ("/admin/", "/admin/moderation/auditentry/", "/admin/chatstore/channel/"):
        html = read_page(sign_in(ada), path)
        assert f"Raid {channel.pk}" in html
        assert f'href="/raids/{channel.pk}/"' in html
    forget_raids()
    assert "page-notice critical" not in read_page(sign_in(ada), "/admin/")
