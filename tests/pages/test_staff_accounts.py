"""Admins manage staff accounts, without a way to become superusers."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from tests.conftest import make_user
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
