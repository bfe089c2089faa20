"""Rights follow from roles, each in its place; direct messages have a role of their own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.roles import (
    EVERYTHING,
    GIVE_ROLES,
    INSTALLATION_ROLES,
    RIGHTS,
    VIEW_CHANNELS,
    Grant,
    Role,
    Scope,
    may_give,
    rights_everywhere,
    rights_of,
    scope_of,
)

PURGE, HEALTH = "moderation.add_purge", "chatstore.view_finding"
GUILDS = (None, 1, 2)
CHANNELS = {11: 1, 12: 1, 21: 2, 31: None}
"""Guilds by channel."""

places = st.sampled_from([{}, {"guild_id": 1}, {"guild_id": 2}, *({"channel_id": channel} for channel in CHANNELS)])
grants = st.lists(
    st.builds(
        lambda role, place: Grant(role, **({} if role in INSTALLATION_ROLES else place)), st.sampled_from(Role), places
    ),
    max_size=5,
)


def includes(grant: Grant, channel_id: int) -> bool:
    if grant.channel_id is not None:
        return grant.channel_id == channel_id
    if grant.guild_id is not None:
        return grant.guild_id == CHANNELS[channel_id]
    return CHANNELS[channel_id] is not None or grant.role is Role.ADMIN


@given(grants, st.sampled_from(sorted(RIGHTS[Role.ADMIN])), st.sampled_from(sorted(CHANNELS)))
def test_a_right_applies_where_one_of_the_roles_gives_it(held: list[Grant], right: str, channel_id: int) -> None:
    having = [grant for grant in held if right in grant.rights]
    expected = any(includes(grant, channel_id) for grant in having if grant.role is not Role.DIRECT)
    if CHANNELS[channel_id] is None and any(grant.role is Role.DIRECT for grant in held):
        expected = expected or bool(having)
    assert scope_of(held, right).includes(channel_id, CHANNELS[channel_id]) == expected


@given(grants, st.sampled_from(sorted(RIGHTS[Role.ADMIN])))
def test_an_account_has_a_right_anywhere_if_it_has_a_scope(held: list[Grant], right: str) -> None:
    assert (right in rights_of(held)) == (not scope_of(held, right).is_nothing)


@given(grants, st.sampled_from(sorted(RIGHTS[Role.ADMIN])))
def test_the_rights_in_every_channel_are_those_whose_scope_is_everything(held: list[Grant], right: str) -> None:
    assert (right in rights_everywhere(held)) == scope_of(held, right).is_everything


@given(grants, grants)
def test_nobody_can_give_more_than_they_have(held: list[Grant], given_roles: list[Grant]) -> None:
    for grant in given_roles:
        guild_id = CHANNELS[grant.channel_id] if grant.channel_id else None
        if may_give(held, grant, guild_id=guild_id):
            assert GIVE_ROLES in rights_of(held)
            for right in rights_of([*held, grant]):
                before, after = scope_of(held, right), scope_of([*held, grant], right)
                for channel_id, guild in CHANNELS.items():
                    assert after.includes(channel_id, guild) <= before.includes(channel_id, guild)


def test_only_administrators_can_give_roles() -> None:
    assert [role for role in Role if GIVE_ROLES in RIGHTS[role]] == [Role.ADMIN]


def test_an_administrator_of_a_guild_gives_roles_there_only() -> None:
    held = [Grant(Role.ADMIN, guild_id=1)]
    assert may_give(held, Grant(Role.ADMIN, guild_id=1), guild_id=None)
    assert may_give(held, Grant(Role.MODERATOR, channel_id=11), guild_id=1)
    assert not may_give(held, Grant(Role.MODERATOR, channel_id=21), guild_id=2)
    assert not may_give(held, Grant(Role.MODERATOR), guild_id=None)
    assert not may_give(held, Grant(Role.DIRECT), guild_id=None)


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.MODERATOR, Role.LEAD, Role.OPERATOR])
def test_direct_messages_take_a_role_of_their_own(role: Role) -> None:
    assert scope_of([Grant(role)], VIEW_CHANNELS) == Scope(every_guild=True)
    assert scope_of([Grant(role), Grant(Role.DIRECT)], VIEW_CHANNELS) == EVERYTHING
    assert scope_of([Grant(Role.DIRECT)], VIEW_CHANNELS) == Scope(direct=True)


def test_the_role_for_direct_messages_alone_only_reads() -> None:
    assert scope_of([Grant(Role.DIRECT)], PURGE).is_nothing
    assert scope_of([Grant(Role.DIRECT), Grant(Role.MODERATOR, guild_id=1)], PURGE) == Scope(
        direct=True, guilds=frozenset({1})
    )


def test_a_guild_owns_no_servers_and_no_accounts() -> None:
    held = Grant(Role.ADMIN, guild_id=1)
    assert HEALTH not in held.rights
    assert "auth.change_user" not in held.rights
    assert PURGE in held.rights


def test_an_auditor_changes_nothing() -> None:
    assert all(right.split(".")[1].startswith("view_") for right in RIGHTS[Role.AUDITOR])


@given(grants, grants)
def test_a_scope_covers_that_of_some_of_its_grants(held: list[Grant], others: list[Grant]) -> None:
    scope = scope_of([*held, *others], PURGE)
    assert scope.covers(scope)
    assert EVERYTHING.covers(scope)
    # Roles for all guilds take the place of those for some.
    if not scope.every_guild:
        assert scope.covers(scope_of(held, PURGE))


@pytest.mark.parametrize(
    "lost",
    [
        Grant(Role.MODERATOR),
        Grant(Role.DIRECT),
        Grant(Role.MODERATOR, guild_id=1),
        Grant(Role.MODERATOR, channel_id=11),
    ],
)
def test_without_one_of_its_grants_a_scope_covers_the_former_one_no_more(lost: Grant) -> None:
    kept = [Grant(Role.MODERATOR, guild_id=2), Grant(Role.MODERATOR, channel_id=31)]
    before, after = scope_of([*kept, lost], PURGE), scope_of(kept, PURGE)
    assert (before.covers(after), after.covers(before)) == (True, False)


@given(grants, st.sampled_from(sorted(RIGHTS[Role.ADMIN])))
def test_a_scope_survives_json(held: list[Grant], right: str) -> None:
    scope = scope_of(held, right)
    assert Scope.from_json(json.loads(json.dumps(scope.as_json()))) == scope
