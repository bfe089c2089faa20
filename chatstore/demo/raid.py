"""A raid for the demonstration: accounts made for it, and what they post."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from chatstore.demo.plan import DemoUser
from chatstore.domain.members import Member
from chatstore.domain.milliseconds import DAY_MS, MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, time_of

RAID_ACCOUNTS = 37

JOINED_MS = 8 * MINUTE_MS
"""The accounts join within this time before the raid."""

_NAME_PARTS = "gilded raven turbo pixel mystic falcon lunar ember drift nova cosmic shadow velvet quartz".split()

_TEXTS = (
    "FREE 10,000 coins for the first 500!! claim at https://harbour-gifts.example/{token} @everyone",
    "free 10.000 coins for the first 500 – claim at https://harbour-gifts.example/{token}",
    "Tidewalkers shuts down tomorrow, move to https://newharbour.example/join/{token} before it is too late",
    "tidewalkers SHUTS DOWN tomorrow!!! move to https://newharbour.example/join/{token} before its too late",
    "WAVE WAVE WAVE WAVE WAVE WAVE",
)
_WEIGHTS = (5, 4, 4, 3, 2)
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def make_raiders(rng: random.Random, now_ms: int) -> tuple[DemoUser, ...]:
    """Return accounts that were created within the last day."""
    names = {
        f"{rng.choice(_NAME_PARTS)}_{rng.choice(_NAME_PARTS)}{rng.randrange(10, 10_000)}": None
        for _ in range(2 * RAID_ACCOUNTS)
    }
    return tuple(
        DemoUser(make_snowflake(now_ms - rng.randrange(DAY_MS // 12, DAY_MS), worker=907, sequence=number), name, "")
        for number, name in enumerate(list(names)[:RAID_ACCOUNTS])
    )


def plan_posts(rng: random.Random, raiders: Sequence[DemoUser]) -> Iterator[tuple[int, str]]:
    """Yield the author and the text of one post of the raid after the other, without end."""
    while True:
        yield rng.choice(raiders).user_id, write_raid_text(rng)


def join_raiders(rng: random.Random, raiders: Sequence[DemoUser], now_ms: int) -> list[Member]:
    """Return the accounts as members who joined within the last minutes."""
    joined = (now_ms - rng.randrange(JOINED_MS) for _ in raiders)
    return [Member(raider.user_id, time_of(make_snowflake(ms)), ()) for raider, ms in zip(raiders, joined, strict=True)]


def write_raid_text(rng: random.Random) -> str:
    """Return one of the texts of the raid, each time a little different."""
    text = rng.choices(_TEXTS, _WEIGHTS)[0]
    return text.format(token="".join(rng.choices(_LETTERS, k=6)))
