"""Members and icons of guilds: the API for a chat's gateway."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from django.utils import timezone

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.members import Member, MemberRole, check_icon_url, check_member
from chatstore.domain.message_limits import check_id
from chatstore.models import Guild
from chatstore.operations.gateway.messages import translate_errors
from chatstore.operations.members import upsert_members

MAX_MEMBERS = 10_000
"""Members of one call. Discord sends them in chunks of 1,000."""


def save_member(
    guild_id: int,
    user_id: int,
    *,
    joined_at: dt.datetime | None = None,
    roles: Sequence[MemberRole] | None = None,
) -> None:
    """Store when a user joined a guild, and their roles there, the highest first; None for what is not known.

    Raises what `save_members` raises.
    """
    try:
        given = None if roles is None else tuple(roles)
    except TypeError:
        raise BadInput(f"the roles must be a sequence, not {type(roles).__name__}") from None
    save_members(guild_id, [Member(user_id, joined_at, given)])


@translate_errors
def save_members(guild_id: int, members: Iterable[Member]) -> None:
    """Store members of a guild, all or none, at most 10,000.

    What is None replaces nothing. Of two times of joining the later one is kept, so that events may arrive in any order
    and twice. Nothing needs to be stored when a member leaves: when they had joined is still needed for a purge.

    Raises `BadInput` for values that cannot be stored, `NotFound` if the guild is not registered, and
    `StoreUnavailable` (save them again).
    """
    check_id(guild_id, what="guild id")
    found: dict[tuple[int, int], Member] = {}
    now = timezone.now()
    for number, member in enumerate(members, start=1):
        if number > MAX_MEMBERS:
            raise BadInput(f"save at most {MAX_MEMBERS:,} members at a time")
        if not isinstance(member, Member):
            raise BadInput(f"a member must be a Member, not {type(member).__name__}")
        check_member(member, now=now)
        key = guild_id, member.user_id
        found[key] = member.with_earlier(found.get(key))
    if not Guild.objects.filter(pk=guild_id).exists():
        raise NotFound(f"guild {guild_id} is not registered")
    upsert_members(found)


@translate_errors
def save_guild_icon(guild_id: int, icon_url: str) -> None:
    """Store the URL of a guild's icon, "" for none.

    Pages show it if the setting `MEDIA_HOSTS` allows its host. Raises what `save_members` raises.
    """
    check_id(guild_id, what="guild id")
    if not Guild.objects.filter(pk=guild_id).update(icon_url=check_icon_url(icon_url)):
        raise NotFound(f"guild {guild_id} is not registered")
