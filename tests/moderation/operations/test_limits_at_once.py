"""Administrators who set the first limits of the same role at the same time: each change is made and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from django.db.models import Q

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.domain.limits import MAX_LIMIT, Limits
from moderation.models import AuditEntry, PurgeLimits
from moderation.operations.access.limits import set_limits
from tests.conftest import make_user
from tests.moderation.limits import make_guild_channel

ROUNDS = 10
PEOPLE = 4


@pytest.fixture
def ada() -> Iterator[User]:
    # Other tests notice nothing of limits as high as these.
    yield (ada := make_user("ada", group="admins"))
    set_limits(Role.LEAD, None, Limits(), actor=ada)


@pytest.mark.parametrize("is_everywhere", [True, False], ids=["everywhere", "one guild"])
def test_each_change_follows_the_one_before(ada: User, *, is_everywhere: bool) -> None:
    guild_id = None if is_everywhere else make_guild_channel().guild_id
    barrier, limits = Barrier(PEOPLE), PurgeLimits.objects.filter(Q(guild_id=guild_id), role=Role.LEAD)

    def change(number: int) -> None:
        try:
            barrier.wait(timeout=60)
            set_limits(Role.LEAD, guild_id, Limits(open_previews=MAX_LIMIT - number), actor=ada)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(PEOPLE) as pool:
        for _round in range(ROUNDS):
            last = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
            list(pool.map(change, range(PEOPLE)))
            stored = limits.get()
            entries = AuditEntry.objects.filter(pk__gt=last, actor=ada, action="limits_changed")
            changes = [(one.details["before"], one.details["after"]) for one in entries]
            follows = {str(before.get("open_previews")): after["open_previews"] for before, after in changes}
            found, limit = [], "None"
            while limit in follows:
                found.append(limit := follows[limit])
            assert sorted(found) == sorted(str(MAX_LIMIT - number) for number in range(PEOPLE))
            assert found[-1] == str(stored.open_previews)
            set_limits(Role.LEAD, guild_id, Limits(), actor=ada)
            assert not limits.exists()
