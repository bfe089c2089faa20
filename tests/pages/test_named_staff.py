"""Where a page names one of several moderators of the same name, their user name is beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils.html import strip_tags

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.templatetags.chat import draw_staff_name
from tests.chatstore.channels import fresh_id
from tests.chatstore.reports import report
from tests.conftest import give, make_user
from tests.moderation.channels import everything, make_channel, old_ids, purge_now, write
from tests.moderation.limits import limit, make_guild_channel, member, preview_some, request
from tests.pages.reading import read_page

SignIn = Callable[[User], Client]


@pytest.fixture
def name(mona: User) -> str:
    """The name of two moderators, as a page shows that of the first."""
    other, family = make_user("mona", group="moderators"), f"Berg {mona.pk}"
    User.objects.filter(pk__in=(mona.pk, other.pk)).update(first_name="Mona", last_name=family)
    mona.refresh_from_db()
    return f"Mona {family} ({mona.username})"


def test_pages_of_a_purge_and_of_its_messages_name_one_moderator(name: str, mona: User, sign_in: SignIn) -> None:
    channel, ids, client = make_channel(), old_ids(2), sign_in(mona)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    for path in (f"/purges/{purge.pk}/", f"/purges/{purge.pk}/undo/", f"/channels/{channel.pk}/{ids[0]}/"):
        assert name in strip_tags(read_page(client, path)), path
    timeline = read_page(client, f"/channels/{channel.pk}/")
    assert f"by {draw_staff_name(name)}: “" in timeline
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="A mistake")
    page = strip_tags(read_page(client, f"/purges/{purge.pk}/"))
    assert f"{name} restored the messages of this purge" in page


def test_a_notice_names_who_requests_approval(name: str, mona: User, sign_in: SignIn) -> None:
    channel = make_guild_channel()
    lead = member("lea", Role.LEAD, channel)
    for account in User.objects.filter(last_name=mona.last_name):
        give(account, Role.MODERATOR, guild_id=channel.guild_id)
    limit(channel, Role.MODERATOR, messages_without_approval=1)
    request(mona, preview_some(mona, 2, channel))
    assert f"{draw_staff_name(name)} requests approval" in read_page(sign_in(lead), "/preferences/")


def test_a_hold_names_who_placed_it(name: str, mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    place_hold(HoldRequest(channel=str(channel.pk)), reason="Evidence", actor=mona)
    assert name in strip_tags(read_page(sign_in(mona), "/holds/"))


def test_names_in_lists_are_kept_on_one_line(name: str, mona: User, sign_in: SignIn) -> None:
    channel, ids, client = make_channel(), old_ids(2), sign_in(mona)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    place_hold(HoldRequest(channel=str(channel.pk)), reason="Evidence", actor=mona)
    case = report(channel, ids[0], author=fresh_id())
    client.post(f"/reports/{case.pk}/resolve/", {"resolution": "nothing"})
    drawn = draw_staff_name(name)
    for path in ("/purges/", f"/purges/{purge.pk}/", "/reports/?state=resolved"):
        assert drawn in read_page(client, path), path
    assert f"Placed by {drawn}" in read_page(client, "/holds/")


def test_a_name_that_nobody_else_has_stands_alone(mona: User, sign_in: SignIn) -> None:
    User.objects.filter(pk=mona.pk).update(first_name="Mona", last_name=f"Single {mona.pk}")
    mona.refresh_from_db()
    channel = make_channel()
    write(channel, old_ids(2))
    purge = purge_now(mona, everything(channel))
    page = read_page(sign_in(mona), f"/purges/{purge.pk}/")
    assert f"Mona Single {mona.pk}" in page
    assert f"({mona.username})" not in page
