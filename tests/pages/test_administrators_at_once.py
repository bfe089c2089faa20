"""Two administrators who remove each other's rights at the same moment: one of them remains."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from django.test import Client

from chatstore.domain.errors import Forbidden
from chatstore.domain.roles import Grant, Role
from chatstore.models import RoleGrant
from chatstore.models.users import User
from moderation.models import AuditEntry
from moderation.operations.access.invitations import invite
from moderation.operations.access.roles import give_roles, take_role
from tests.conftest import make_user

SignIn = Callable[[User], Client]

ROUNDS = 10


def make_pair() -> tuple[User, User]:
    return make_user("ada", group="admins"), make_user("bea", group="admins")


def at_once(act: Callable[[User, User], bool], pair: tuple[User, User]) -> list[bool]:
    """Let each act on the other at the same time; return who succeeded."""
    barrier = Barrier(2)

    def act_together(actor: User, other: User) -> bool:
        # As in a request, whose roles were read before it acts.
        assert actor.has_perm("auth.change_user")
        try:
            barrier.wait(timeout=60)
            return act(actor, other)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(act_together, pair, pair[::-1]))


def test_one_role_is_taken() -> None:
    def take(actor: User, other: User) -> bool:
        try:
            take_role(RoleGrant.objects.get(account=other).pk, actor=actor)
        except Forbidden:
            return False
        return True

    for _round in range(ROUNDS):
        pair = make_pair()
        taken = at_once(take, pair)
        assert sorted(taken) == [False, True]
        left = RoleGrant.objects.filter(account__in=pair, role=Role.ADMIN).in_force()
        assert [row.account for row in left] == [one for one, has_taken in zip(pair, taken, strict=True) if has_taken]
        assert AuditEntry.objects.filter(action="role_taken", actor__in=pair).count() == 1


def test_who_has_just_lost_the_role_gives_none() -> None:
    ada, bea = make_pair()
    friend = make_user("tess", group=None)
    # As in a request, whose roles were read before it acts.
    assert bea.has_perm("chatstore.add_rolegrant")
    take_role(RoleGrant.objects.get(account=bea).pk, actor=ada)
    with pytest.raises(Forbidden):
        give_roles(friend, [Grant(Role.ADMIN)], actor=bea)
    assert not RoleGrant.objects.filter(account=friend).exists()


def test_who_has_just_lost_the_role_invites_nobody() -> None:
    ada, bea = make_pair()
    assert bea.has_perm("chatstore.add_rolegrant")
    take_role(RoleGrant.objects.get(account=bea).pk, actor=ada)
    name = f"nora-{secrets.token_hex(4)}"
    with pytest.raises(Forbidden):
        invite(name, [Grant(Role.ADMIN)], actor=bea)
    assert not User.objects.filter(username=name).exists()


def test_one_account_is_deactivated(sign_in: SignIn) -> None:
    for _round in range(ROUNDS):
        pair = make_pair()
        clients = {one.pk: sign_in(one) for one in pair}

        def deactivate(actor: User, other: User, clients: dict[int, Client] = clients) -> bool:
            posted = {"username": other.username}
            return clients[actor.pk].post(f"/admin/auth/user/{other.pk}/change/", posted).status_code == 302

        at_once(deactivate, pair)
        assert User.objects.filter(pk__in=[one.pk for one in pair], is_active=True).count() == 1
