"""Which limits apply to a person, and when there is room for another purge."""

from __future__ import annotations

import datetime as dt

import pytest

from chatstore.domain.roles import Grant, Role
from moderation.domain.limits import HOUR, Confirmed, Limits, PlaceLimits, free_at, role_in

NOON = dt.datetime(2026, 5, 3, 12, tzinfo=dt.UTC)
MODERATOR, LEAD, ADMIN = Role.MODERATOR, Role.LEAD, Role.ADMIN


@pytest.mark.parametrize(
    ("grants", "guild_id", "role"),
    [
        ([Grant(MODERATOR, guild_id=1)], 1, MODERATOR),
        ([Grant(MODERATOR), Grant(LEAD, guild_id=1)], 1, LEAD),
        ([Grant(MODERATOR), Grant(LEAD, guild_id=1)], 2, MODERATOR),
        ([Grant(ADMIN, guild_id=1), Grant(MODERATOR, guild_id=1)], 1, None),
        ([Grant(MODERATOR, channel_id=7), Grant(LEAD, channel_id=8)], 1, MODERATOR),
        ([Grant(LEAD, guild_id=1), Grant(MODERATOR, channel_id=7)], 1, LEAD),
        ([Grant(MODERATOR, guild_id=1), Grant(Role.DIRECT)], 0, MODERATOR),
        ([Grant(Role.AUDITOR, guild_id=1), Grant(Role.OPERATOR)], 1, None),
    ],
)
def test_the_highest_role_in_a_guild_decides(grants: list[Grant], guild_id: int, role: Role | None) -> None:
    assert role_in(grants, guild_id) == role


def test_a_purge_that_never_fits_into_an_hour_needs_an_approval() -> None:
    assert Limits().without_approval is None
    assert Limits(messages_without_approval=10, messages_per_hour=20).without_approval == 10
    assert Limits(messages_per_hour=20).without_approval == 20


def confirmed(*messages: int) -> list[Confirmed]:
    return [Confirmed(NOON + dt.timedelta(minutes=index), count) for index, count in enumerate(messages)]


@pytest.mark.parametrize(
    ("limits", "earlier", "messages", "minutes"),
    [
        (Limits(purges_per_hour=2), (5,), 5, None),
        (Limits(purges_per_hour=2), (5, 5), 5, 0),
        (Limits(purges_per_hour=1), (5, 5, 5), 5, 2),
        (Limits(messages_per_hour=10), (5,), 5, None),
        (Limits(messages_per_hour=10), (5,), 6, 0),
        (Limits(messages_per_hour=10), (1, 8, 1), 9, 1),
        (Limits(purges_per_hour=2, messages_per_hour=10), (1, 9), 9, 1),
    ],
)
def test_a_purge_fits_once_enough_of_the_hour_has_passed(
    limits: Limits, earlier: tuple[int, ...], messages: int, minutes: int | None
) -> None:
    expected = None if minutes is None else NOON + dt.timedelta(minutes=minutes) + HOUR
    assert free_at(confirmed(*earlier), messages=messages, limits=limits) == expected


def test_a_purge_whose_guilds_are_not_known_counts_everywhere() -> None:
    place = PlaceLimits(1, "Tidewalkers", Limits())
    assert [place.includes(guild_ids) for guild_ids in ([1, 2], [2], [], None)] == [True, False, False, True]
    assert PlaceLimits(None, "", Limits()).includes([2])
