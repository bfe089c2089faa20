"""A gateway saves members of guilds set-wise, all or none; what it does not know replaces nothing."""

from __future__ import annotations

import datetime as dt
import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore import gateway
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.members import Member, MemberRole
from chatstore.models import Guild, GuildMember
from chatstore.operations.gateway.members import MAX_MEMBERS
from chatstore.operations.members import names_of_roles
from tests.chatstore.channels import fresh_id

JOINED = dt.datetime(2025, 3, 1, 12, tzinfo=dt.UTC)
BACK = JOINED + dt.timedelta(days=30)
CAPTAIN, CREW = MemberRole("Captain", "#E67E22"), MemberRole("Crew")


@pytest.fixture
def guild() -> Guild:
    return Guild.objects.create(pk=fresh_id(), name="Harbour")


def known_of(guild: Guild, user_id: int) -> tuple[dt.datetime | None, tuple[MemberRole, ...]]:
    member = GuildMember.objects.get(guild=guild, user_id=user_id)
    return member.joined_at, member.member_roles


def test_a_member_is_saved_with_what_is_known(guild: Guild) -> None:
    gateway.save_member(guild.pk, 7, joined_at=JOINED, roles=[CAPTAIN, CREW])
    assert known_of(guild, 7) == (JOINED, (MemberRole("Captain", "#e67e22"), CREW))
    # Another guild is another member.
    other = Guild.objects.create(pk=fresh_id(), name="Quay")
    gateway.save_member(other.pk, 7)
    assert known_of(other, 7) == (None, ())


def test_what_is_unknown_replaces_nothing(guild: Guild) -> None:
    gateway.save_member(guild.pk, 7, joined_at=JOINED)
    gateway.save_member(guild.pk, 7, roles=[CREW])
    gateway.save_member(guild.pk, 7)
    assert known_of(guild, 7) == (JOINED, (CREW,))
    # No role is known: the member lost the one they had.
    gateway.save_member(guild.pk, 7, roles=[])
    assert known_of(guild, 7) == (JOINED, ())


def test_a_member_who_came_back_joined_then_in_whatever_order_joins_arrive(guild: Guild) -> None:
    for user_id, order in ((7, (JOINED, BACK)), (8, (BACK, JOINED))):
        for joined_at in order:
            gateway.save_member(guild.pk, user_id, joined_at=joined_at)
        assert known_of(guild, user_id)[0] == BACK
    gateway.save_members(guild.pk, [Member(9, BACK), Member(9, JOINED, (CREW,))])
    assert known_of(guild, 9) == (BACK, (CREW,))


def test_one_bad_member_leaves_all_unsaved(guild: Guild) -> None:
    good = [Member(user_id, JOINED) for user_id in range(5)]
    for bad in (Member(2**70), Member(7, JOINED.replace(tzinfo=None)), "7"):
        with pytest.raises(BadInput):
            gateway.save_members(guild.pk, [*good, bad])  # type: ignore[list-item]
    for roles in ("Crew", 7, [CREW, "Crew"]):
        with pytest.raises(BadInput, match="role"):
            gateway.save_member(guild.pk, 7, roles=roles)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="at most"):
        gateway.save_members(guild.pk, (Member(user_id) for user_id in range(MAX_MEMBERS + 1)))
    assert not GuildMember.objects.filter(guild=guild).exists()


def test_a_guild_must_be_registered() -> None:
    with pytest.raises(NotFound, match="not registered"):
        gateway.save_member(fresh_id(), 7, joined_at=JOINED)
    with pytest.raises(NotFound, match="not registered"):
        gateway.save_guild_icon(fresh_id(), "https://cdn.example/a.png")


def test_thousands_of_members_take_a_statement_per_thousand(guild: Guild) -> None:
    # Users that no other test shows.
    crowd = [Member(guild.pk + number, JOINED, (CREW,)) for number in range(2_500)]
    random.Random(1).shuffle(crowd)
    with CaptureQueriesContext(connection) as captured:
        gateway.save_members(guild.pk, crowd)
    assert len([query for query in captured if "INSERT" in query["sql"]]) == 3
    assert GuildMember.objects.filter(guild=guild, joined_at=JOINED).count() == 2_500


def test_roles_with_an_id_are_named_for_messages_that_mention_them(guild: Guild) -> None:
    captain, crew = MemberRole("Captain", "#E67E22", guild.pk + 1), MemberRole("Crew", role_id=guild.pk + 2)
    gateway.save_members(guild.pk, [Member(7, roles=(captain, crew)), Member(8, roles=(crew, CREW))])
    named = names_of_roles([guild.pk], [guild.pk + 1, guild.pk + 2, guild.pk + 3])
    assert named == {guild.pk: {guild.pk + 1: "Captain", guild.pk + 2: "Crew"}}
    gateway.save_member(guild.pk, 9, roles=[MemberRole("Skipper", role_id=guild.pk + 1)])
    other = Guild.objects.create(pk=fresh_id(), name="Quay")
    gateway.save_member(other.pk, 9, roles=[MemberRole("Cook", role_id=other.pk + 1)])
    named = names_of_roles([guild.pk, other.pk], [guild.pk + 1, other.pk + 1])
    assert named == {guild.pk: {guild.pk + 1: "Skipper"}, other.pk: {other.pk + 1: "Cook"}}
    assert names_of_roles([other.pk], [guild.pk + 1]) == names_of_roles([], [guild.pk + 1]) == {}
    with pytest.raises(BadInput, match="role id"):
        gateway.save_member(guild.pk, 7, roles=[MemberRole("Crew", role_id=2**70)])


def test_saving_the_same_again_writes_no_row(guild: Guild) -> None:
    gateway.save_member(guild.pk, 7, joined_at=JOINED, roles=[CAPTAIN])
    before = _version(guild)
    gateway.save_member(guild.pk, 7, joined_at=JOINED, roles=[CAPTAIN])
    gateway.save_member(guild.pk, 7)
    assert _version(guild) == before


def _version(guild: Guild) -> int:
    """Return the transaction that wrote the row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin::text::bigint FROM chatstore_guildmember WHERE guild_id = %s", [guild.pk])
        return int(cursor.fetchone()[0])


def test_the_icon_of_a_guild_is_saved_and_taken_away(guild: Guild) -> None:
    gateway.save_guild_icon(guild.pk, "https://cdn.example/icons/a.png")
    guild.refresh_from_db()
    assert guild.icon_url == "https://cdn.example/icons/a.png"
    with pytest.raises(BadInput, match="https"):
        gateway.save_guild_icon(guild.pk, "http://cdn.example/icons/a.png")
    gateway.save_guild_icon(guild.pk, "")
    guild.refresh_from_db()
    assert guild.icon_url == ""
