"""Administrators of a guild are offered the people of their guild only; others they have to know by name."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models import Channel, RoleGrant
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.rights import GIVE_ROLES
from moderation.operations.lookup.audit_log import MAX_ACCOUNTS, account_names
from tests.conftest import make_user
from tests.moderation.limits import make_guild_channel, member

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    return make_guild_channel()


@pytest.fixture
def gil(channel: Channel) -> User:
    return member("gil", Role.ADMIN, channel)


@pytest.fixture
def other() -> User:
    """Return a moderator of another guild."""
    account = member("otis", Role.MODERATOR, make_guild_channel("Gophers"))
    account.email = f"{account.username}.{secrets.token_hex(4)}@example.org"
    account.save()
    return account


def offered(client: Client, url: str) -> set[str]:
    page = client.get(url).content.decode()
    (found,) = re.findall(r'<datalist id="people">(.*?)</datalist>', page, flags=re.DOTALL)
    return set(re.findall(r'value="([^"]*)"', found))


def test_people_who_have_or_had_a_role_there_are_offered(
    gil: User, other: User, channel: Channel, sign_in: SignIn
) -> None:
    mona, former = member("mona", Role.MODERATOR, channel), member("fred", Role.LEAD, channel)
    RoleGrant.objects.filter(account=former).update(taken_at=ClockTimestamp())
    of_a_channel = make_user("cleo", group=None)
    RoleGrant.objects.create(account=of_a_channel, role=Role.MODERATOR, channel=channel)
    names = {one.username for one in (gil, mona, former, of_a_channel)}
    assert offered(sign_in(gil), "/roles/") == names


def test_the_audit_log_of_a_guild_offers_the_same(gil: User, other: User, channel: Channel, sign_in: SignIn) -> None:
    lena = member("lena", Role.LEAD, channel)
    assert offered(sign_in(lena), "/audit/") == {lena.username, gil.username}


def test_administrators_of_the_installation_are_offered_everyone(ada: User, other: User) -> None:
    everyone = User.objects.order_by("username").values_list("username", flat=True)
    assert account_names(ada, GIVE_ROLES) == list(everyone[:MAX_ACCOUNTS])


@pytest.mark.parametrize("by", ["username", "email"])
def test_others_are_found_by_what_is_typed_in_full(
    by: str, gil: User, other: User, channel: Channel, sign_in: SignIn
) -> None:
    client, exact = sign_in(gil), str(getattr(other, by))
    posted = {"role": "moderator", "server": channel.guild_id}
    for typed in (exact[:-1], exact[1:], exact[:1], "", "%", "@"):
        assert client.post("/roles/", {"person": typed, **posted}).status_code == 400
    page = client.post("/roles/", {"person": exact[:-1], **posted}).content.decode()
    assert exact not in page
    assert client.post("/roles/", {"person": exact.upper() if by == "email" else exact, **posted}).status_code == 302
    assert RoleGrant.objects.filter(account=other, guild=channel.guild_id).in_force().exists()


def test_a_mail_address_of_two_accounts_names_neither(
    gil: User, other: User, channel: Channel, sign_in: SignIn
) -> None:
    User.objects.filter(pk=make_user("twin", group=None).pk).update(email=other.email)
    posted = {"person": other.email, "role": "moderator", "server": channel.guild_id}
    assert sign_in(gil).post("/roles/", posted).status_code == 400
