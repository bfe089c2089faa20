"""Accounts get the roles of their groups when they are upgraded: nobody loses a right, and nobody gains one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from importlib import import_module
from io import StringIO

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import connection

from chatstore.models import RoleGrant
from chatstore.models.users import User

fill_roles = import_module("moderation.migrations.0028_fill_roles")


@pytest.fixture
def account() -> Iterator[User]:
    user = User.objects.create_user(f"old-{secrets.token_hex(4)}", is_staff=True)
    yield user
    user.groups.clear()
    user.user_permissions.clear()


def upgrade(account: User, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], str]:
    """Run the migration; return the roles of the account, and what was printed about it."""
    printed = StringIO()
    monkeypatch.setattr("sys.stderr", printed)
    with connection.schema_editor() as editor:
        fill_roles.give_roles(apps, editor)
    rows = RoleGrant.objects.filter(account=account)
    assert not rows.exclude(guild=None, channel=None, given_by=None, until=None).exists()
    about_it = [line for line in printed.getvalue().splitlines() if account.username in line]
    return set(rows.values_list("role", flat=True)), "".join(about_it)


def permit(account: User, *codenames: str) -> None:
    account.user_permissions.set(Permission.objects.filter(codename__in=codenames))


@pytest.mark.parametrize(
    ("group", "roles"),
    [
        ("moderators", {"moderator", "direct"}),
        ("leads", {"lead", "direct"}),
        ("operators", {"operator", "direct"}),
        ("admins", {"admin"}),
    ],
)
def test_a_group_becomes_the_role_of_that_name(
    group: str, roles: set[str], account: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.groups.add(Group.objects.get(name=group))
    assert upgrade(account, monkeypatch) == (roles, "")


def test_several_groups_become_the_widest_roles(account: User, monkeypatch: pytest.MonkeyPatch) -> None:
    account.groups.set(Group.objects.filter(name__in=("moderators", "leads", "operators")))
    assert upgrade(account, monkeypatch)[0] == {"lead", "operator", "direct"}


def test_single_permissions_become_the_roles_whose_rights_they_are(
    account: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit(account, *fill_roles.AUDITOR)
    assert upgrade(account, monkeypatch) == ({"auditor", "direct"}, "")


def test_rights_that_no_role_has_are_printed(account: User, monkeypatch: pytest.MonkeyPatch) -> None:
    permit(account, "view_purge", "erase_purge")
    roles, printed = upgrade(account, monkeypatch)
    assert roles == set()
    assert f"{account.username} had rights that none of its roles has: erase_purge, view_purge" in printed


def test_an_account_without_rights_gets_no_role(account: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert upgrade(account, monkeypatch) == (set(), "")
