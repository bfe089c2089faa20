"""Members of the demonstration's guilds: roles, and when they joined."""

from __future__ import annotations

import random

from chatstore.demo.plan import DEMO_DAYS, DemoPlan
from chatstore.domain.members import Member, MemberRole
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, ms_of, time_of

RAID_JOINED_MINUTES = (30, 44)
"""How long before the end the raiders joined: the raid lasts almost half an hour."""

_MOD, _HOST, _REGULAR, _BOT = range(4)
_ROLES = (
    (
        MemberRole("Harbour master", "#e67e22"),
        MemberRole("Navigator", "#3498db"),
        MemberRole("Crew", "#1abc9c"),
        MemberRole("Bots", "#95a5a6"),
    ),
    (
        MemberRole("Head baker", "#d35400"),
        MemberRole("Oven keeper", "#9b59b6"),
        MemberRole("Regular", "#c27c0e"),
        MemberRole("Bots", "#95a5a6"),
    ),
    (
        MemberRole("Keyholder", "#e91e63"),
        MemberRole("Bench host", "#2ecc71"),
        MemberRole("Maker", "#206694"),
        MemberRole("Bots", "#95a5a6"),
    ),
)


def make_members(plan: DemoPlan, guild: int) -> list[Member]:
    """Return the members of a guild, by its place in the plan."""
    rng = random.Random(f"demo {plan.seed} members {guild}")
    begin_ms, roles = ms_of(plan.guild_ids[guild]), _ROLES[guild]
    start_ms = plan.until_ms - DEMO_DAYS * DAY_MS

    def join(user_id: int, ms: int, *had: int) -> Member:
        joined_at = time_of(make_snowflake(ms))
        return Member(user_id, joined_at, tuple(roles[place] for place in had))

    members = [join(bot.user_id, start_ms, _BOT) for bot in plan.bots]
    for index, person in enumerate(plan.people):
        if index % 3 == guild or index % 17 == 0 or index < 3:
            had = [_MOD] * (index < 9) + [_HOST] * (index % 11 == 0) + [_REGULAR] * (index % 4 != 0)
            members.append(join(person.user_id, rng.randrange(max(begin_ms, ms_of(person.user_id)), start_ms), *had))
    members.append(join(plan.spammer.user_id, plan.until_ms - 44 * DAY_MS))
    if guild == 0:
        members.append(join(plan.flooder.user_id, plan.until_ms - 60 * DAY_MS))
        first, last = RAID_JOINED_MINUTES
        members += [
            join(raider.user_id, plan.until_ms - rng.randrange(first * MINUTE_MS, last * MINUTE_MS))
            for raider in plan.raiders
        ]
    return members
