"""Admins manage staff accounts, without a way to become superusers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from chatstore.domain.roles import Grant, Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import Invitation
from moderation.operations.access.invitations import invite
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]

ACCOUNTS = "/admin/auth/user/"


def change(client: Client, account: User, **fields: object) -> User:
    client.post(f"{ACCOUNTS}{account.pk}/change/", {"username": account.username, "is_active": "on", **fields})
    return User.objects.get(pk=account.pk)


def test_an_admin_creates_an_account(ada: User, sign_in: SignIn) -> None:
    client, name, password = sign_in(ada), f"nora-{secrets.token_hex(4)}", secrets.token_hex(12)
    posted = {"username": name, "usable_password": "true", "password1": password, "password2": password}
    assert client.post(f"{ACCOUNTS}add/", posted).status_code == 302
    nora = User.objects.get(username=name)
    assert nora.is_staff
    assert not nora.is_superuser
    assert Client().post("/sign-in/", {"username": name, "password": password}).status_code == 302


def test_a_deactivated_account_is_signed_out_at_once(ada: User, mona: User, sign_in: SignIn) -> None:
    monas = sign_in(mona)
    assert monas.get("/").status_code == 200
    assert not change(sign_in(ada), mona, is_active="").is_active
    assert monas.get("/").status_code == 302


def test_an_admin_cannot_deactivate_their_own_account(ada: User, sign_in: SignIn) -> None:
    assert change(sign_in(ada), ada, is_active="").is_active


def test_an_admin_cannot_make_a_superuser(ada: User, mona: User, sign_in: SignIn) -> None:
    for account in (ada, mona):
        assert not change(sign_in(ada), account, is_superuser="on").is_superuser


def test_an_admin_cannot_change_a_superuser(ada: User, sign_in: SignIn) -> None:
    root = make_user("root", group=None)
    User.objects.filter(pk=root.pk).update(is_superuser=True)
    client, password = sign_in(ada), secrets.token_hex(12)
    assert client.post(f"{ACCOUNTS}{root.pk}/change/", {"username": "mine", "is_active": "on"}).status_code == 403
    posted = {"usable_password": "true", "password1": password, "password2": password}
    assert client.post(f"{ACCOUNTS}{root.pk}/password/", posted).status_code == 403
    assert Client().post("/sign-in/", {"username": root.username, "password": password}).status_code == 200


def test_no_account_can_be_deleted(ada: User, mona: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    assert client.post(f"{ACCOUNTS}{mona.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(ACCOUNTS, {"action": "delete_selected", "_selected_action": [mona.pk], "post": "yes"})
    assert User.objects.filter(pk=mona.pk).exists()


def test_the_id_of_a_channel_cannot_be_edited(ada: User, sign_in: SignIn) -> None:
    channel = make_channel()
    posted = {"id": channel.pk + 1, "name": "renamed", "kind": channel.kind, "category": "", "topic": ""}
    assert sign_in(ada).post(f"/admin/chatstore/channel/{channel.pk}/change/", posted).status_code == 302
    assert Channel.objects.get(pk=channel.pk).name == "renamed"
    assert not Channel.objects.filter(pk=channel.pk + 1).exists()


def row_of(client: Client, account: User) -> dict[str, str]:
    html = client.get(f"{ACCOUNTS}?q={account.username}").content.decode()
    cells = re.findall(r'<td[^>]*class="[^"]*field-(\w+)[^"]*"[^>]*>(.*?)</td>', html, re.DOTALL)
    return {name: " ".join(re.sub("<[^>]*>", "", cell).split()) for name, cell in cells}


def test_the_list_has_roles_and_the_second_factor_of_each_account(ada: User, mona: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    row = row_of(client, mona)
    assert (row["role_names"], row["has_second_factor"], row["status"]) == (
        "Moderator, Direct messages",
        "no",
        "Active",
    )
    TOTPDevice.objects.create(user=mona, name="app", confirmed=True)
    assert row_of(client, mona)["has_second_factor"] == "yes"
    change(client, mona, is_active="")
    assert row_of(client, mona)["status"] == "Not active"


def test_the_list_says_in_how_many_places_an_account_has_a_role(ada: User, sign_in: SignIn) -> None:
    client, nora = sign_in(ada), make_user("nora", group=None)
    channels = [make_channel(guild=name) for name in ("Harbour", "Quarry")]
    give(nora, Role.MODERATOR, guild_id=channels[0].guild_id)
    assert row_of(client, nora)["role_names"] == "Moderator (1 server)"
    give(nora, Role.MODERATOR, guild_id=channels[1].guild_id)
    give(nora, Role.LEAD, channel_id=channels[0].pk)
    assert row_of(client, nora)["role_names"] == "Moderator (2 servers), Lead (1 channel)"
    give(nora, Role.MODERATOR, channel_id=make_channel().pk)
    assert row_of(client, nora)["role_names"] == "Moderator (2 servers, 1 channel), Lead (1 channel)"
    # The places are part of everywhere.
    give(nora, Role.MODERATOR)
    assert row_of(client, nora)["role_names"] == "Moderator, Lead (1 channel)"


def test_the_list_names_superusers(ada: User, sign_in: SignIn) -> None:
    root = make_user("root", group=None)
    assert row_of(sign_in(ada), root)["role_names"] == "–"
    User.objects.filter(pk=root.pk).update(is_superuser=True)
    assert row_of(sign_in(ada), root)["role_names"] == "Superuser"


def test_an_account_whose_link_was_not_used_is_invited(ada: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    nora, _token = invite(f"nora-{secrets.token_hex(4)}", [Grant(Role.MODERATOR)], actor=ada)
    assert row_of(client, nora)["status"] == "Invited"
    Invitation.objects.filter(account=nora).update(expires_at=timezone.now())
    assert row_of(client, nora)["status"] == "Invitation expired"
    Invitation.objects.filter(account=nora).update(ended_at=timezone.now())
    assert row_of(client, nora)["status"] == "Active"


def test_the_list_of_accounts_takes_as_many_statements_for_more_rows(ada: User, sign_in: SignIn) -> None:
    client, counts = sign_in(ada), []
    name = f"nora-{secrets.token_hex(4)}"
    for number in range(2):
        invite(f"{name}-{number}", [Grant(Role.MODERATOR), Grant(Role.OPERATOR)], actor=ada)
        with CaptureQueriesContext(connection) as found:
            html = client.get(f"{ACCOUNTS}?q={name}").content.decode()
        assert len(re.findall("Moderator, Operator", html)) == number + 1
        counts.append(len(found))
    assert counts[0] == counts[1]


def test_the_section_is_called_staff_accounts(ada: User, sign_in: SignIn) -> None:
    html = sign_in(ada).get(ACCOUNTS).content.decode()
    assert "Staff accounts" in html
    assert "Authentication and Authorization" not in html
