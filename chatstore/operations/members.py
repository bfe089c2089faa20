"""Members of guilds: one statement writes, or reads, those of a batch.

What is not known replaces nothing, and of two joins the newer one is kept: a member who left and came back joined when
they came back. So the order of writes does not matter, and a repeated one changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from django.db import connection, transaction

from chatstore.domain.members import Member, MemberRole, role_from_json, roles_as_json
from chatstore.domain.snowflakes import unix_ms
from chatstore.models import GuildMember, GuildRole

MEMBERS_PER_STATEMENT = 1_000

_TABLE = GuildMember._meta.db_table

# In the order of the keys, so that two batches never deadlock. Rows that stay as they are are not written.
_UPSERT = f"""INSERT INTO {_TABLE} AS known (guild_id, user_id, joined_at, roles)
    SELECT guild_id, user_id, joined_at, roles::jsonb
    FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[], %s::text[]) AS new (guild_id, user_id, joined_at, roles)
    ORDER BY guild_id, user_id
    ON CONFLICT (guild_id, user_id) DO UPDATE
    SET joined_at = greatest(known.joined_at, excluded.joined_at), roles = coalesce(excluded.roles, known.roles)
    WHERE (known.joined_at, known.roles) IS DISTINCT FROM
        (greatest(known.joined_at, excluded.joined_at), coalesce(excluded.roles, known.roles))"""

_ROLES = GuildRole._meta.db_table

_UPSERT_ROLES = f"""INSERT INTO {_ROLES} AS known (guild_id, role_id, name)
    SELECT guild_id, role_id, name
    FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS new (guild_id, role_id, name)
    ORDER BY guild_id, role_id
    ON CONFLICT (guild_id, role_id) DO UPDATE SET name = excluded.name WHERE known.name <> excluded.name"""


@transaction.atomic
def upsert_members(members: Mapping[tuple[int, int], Member]) -> None:
    """Store members by (guild id, user id), and the names of their roles, all or none. The guilds exist."""
    rows = sorted(members.items())
    for start in range(0, len(rows), MEMBERS_PER_STATEMENT):
        some = rows[start : start + MEMBERS_PER_STATEMENT]
        with connection.cursor() as cursor:
            cursor.execute(_UPSERT, _columns(some))
            if named := _named_roles(some):
                cursor.execute(_UPSERT_ROLES, [list(column) for column in zip(*named, strict=True)])


def _columns(rows: Sequence[tuple[tuple[int, int], Member]]) -> list[list[object]]:
    return [
        [guild_id for (guild_id, _), _ in rows],
        [user_id for (_, user_id), _ in rows],
        [member.joined_at for _, member in rows],
        [None if member.roles is None else json.dumps(roles_as_json(member.roles)) for _, member in rows],
    ]


def highest_roles(guild_id: int | None, user_ids: Collection[int]) -> dict[int, MemberRole]:
    """Return the highest role of each of some users in a guild. Without a guild no statement is sent."""
    if guild_id is None or not user_ids:
        return {}
    members = GuildMember.objects.filter(guild_id=guild_id, user_id__in=user_ids, roles__isnull=False)
    highest = members.values_list("user_id", "roles__0")
    return {user_id: role_from_json(role) for user_id, role in highest if role is not None}


def join_times(guild_id: int | None, user_ids: Collection[int]) -> dict[int, int]:
    """Return when some users joined a guild (Unix ms), as far as it is known. Without a guild no statement is sent."""
    if guild_id is None or not user_ids:
        return {}
    members = GuildMember.objects.filter(guild_id=guild_id, user_id__in=user_ids)
    joined = members.values_list("user_id", "joined_at")
    return {user_id: unix_ms(joined_at) for user_id, joined_at in joined if joined_at is not None}


def _named_roles(rows: Sequence[tuple[tuple[int, int], Member]]) -> list[tuple[int, int, str]]:
    """Return the roles that have an ID, each once, by guild ID and role ID, with its name."""
    named = {
        (guild_id, role.role_id): role.name
        for (guild_id, _), member in rows
        for role in member.roles or ()
        if role.role_id is not None
    }
    return [(*key, named[key]) for key in sorted(named)]


def names_of_roles(guild_ids: Collection[int], role_ids: Collection[int]) -> dict[int, dict[int, str]]:
    """Return the names of roles by guild and ID, as far as they are known; without any no statement is sent."""
    if not guild_ids or not role_ids:
        return {}
    names: dict[int, dict[int, str]] = {}
    roles = GuildRole.objects.filter(guild_id__in=guild_ids, role_id__in=role_ids)
    for guild_id, role_id, name in roles.values_list("guild_id", "role_id", "name"):
        names.setdefault(guild_id, {})[role_id] = name
    return names
