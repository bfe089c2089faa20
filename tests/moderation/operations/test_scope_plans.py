"""Scopes cost one statement per request, nothing for those who may see everything, and an index for the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.roles import Role
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.access.visibility import visible_channels, visible_purges
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.purging.listing import list_purges
from moderation.operations.reports.queue import list_cases
from tests.chatstore.channels import fresh_id
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel
from tests.plans import explain


@pytest.fixture
def guild() -> Guild:
    guild = make_channel(guild="Harbour").guild
    assert guild is not None
    return guild


@pytest.fixture
def gina(guild: Guild) -> User:
    """Gina, a moderator of one guild."""
    gina = make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=guild.pk)
    return gina


def test_those_who_may_see_everything_have_no_further_condition(ada: User, mona: User) -> None:
    for user in (ada, mona):
        channels, purges = visible_channels(user), visible_purges(user)
        assert "WHERE" not in str(channels.query)
        assert str(purges.query) == str(Purge.objects.filter(is_rewrite=False).select_related("moderator").query)


def test_a_role_for_the_whole_installation_leaves_out_direct_messages_only() -> None:
    lea = make_user("lea", group=None)
    give(lea, Role.LEAD)
    sql = str(visible_channels(lea).query)
    assert sql.count("WHERE") == 1
    assert '"chatstore_channel"."guild_id" IS NOT NULL' in sql


@pytest.mark.parametrize(
    "read",
    [
        lambda user: list(visible_channels(user)),
        lambda user: visible_channels(user).filter(pk=1).first(),
        list_purges,
        lambda user: visible_purges(user).filter(pk=1).first(),
        list_cases,
    ],
)
def test_the_rows_of_a_guild_are_found_by_index(read: Callable[[User], object], gina: User) -> None:
    statements = explain(lambda: read(gina), use_indexes=True)
    tables = {Channel._meta.db_table, Purge._meta.db_table}
    assert [statement.sql for statement in statements if tables & statement.scanned] == []


@pytest.mark.parametrize("path", ["/", "/purges/", "/reports/", "/holds/"])
def test_a_request_reads_the_roles_once(path: str, gina: User, ada: User) -> None:
    # A hold in force and a lifted one, both of which name staff.
    for _ in range(2):
        hold = place_hold(HoldRequest(author=str(fresh_id())), reason="Case", actor=ada)
    lift_hold(hold.pk, reason="Closed", actor=ada)
    client = Client()
    client.force_login(gina)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(path).status_code == 200
    grants = [query["sql"] for query in captured if "chatstore_rolegrant" in query["sql"]]
    assert sum(f'"account_id" = {gina.pk}' in sql for sql in grants) == 1
    # Where staff are listed, one statement reads the names of those that the viewer knows by their roles.
    assert len(grants) <= 2
    assert not [query["sql"] for query in captured if "auth_group" in query["sql"] or "auth_permission" in query["sql"]]
