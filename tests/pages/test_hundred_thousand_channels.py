"""With 100,000 channels, the table of all of them answers within 300 ms, whatever it is sorted and filtered by.

So do the lists that a moderator sees beside a page and while typing: servers and channels, suggestions of the search
box, and channels to choose in the composer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.test import Client

from chatstore.models import Channel, Guild
from chatstore.models.users import User
from chatstore.operations.health.channel_list import ROWS_PER_PAGE
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import make_channel
from tests.table_owner import as_table_owner

pytestmark = pytest.mark.slow

SignIn = Callable[[User], Client]

CHANNELS = 100_000
LIMIT_MS = 300
ROUNDS = 3
"""The fastest counts: what else the machine does is not measured."""

_ADD_CHANNELS = """
INSERT INTO chatstore_channel (id, guild_id, kind, name, category, topic)
SELECT %(first)s + n, %(guild)s, 'text', 'pier ' || n %% 977, '', '' FROM generate_series(1, %(count)s) n
"""

# Every twentieth was never measured. In many columns most rows are equal, as they are where little was deleted.
_MEASURE = """
UPDATE chatstore_channelsummary SET figure_state = 1 + n %% 5, tombstones = n %% 50, bytes = n %% 9973 * 1000,
    page_us = 2000 + n %% 900, page_rows = 51, page_tombstones = 0, buckets = 7, empty_buckets = n %% 7,
    empty_share = (n %% 7) / 7.0, uncovered_deletes = n %% 3, last_purge_id = n,
    last_purged_at = now() - n %% 100 * interval '1 hour', page_at = now(), tombstones_at = now(), bytes_at = now(),
    uncovered_at = now(), refreshed_at = now(), due_at = NULL
FROM generate_series(1, %(count)s) n WHERE channel_id = %(first)s + n AND n %% 20 > 0
"""


_VACUUM = "VACUUM ANALYZE chatstore_channel, chatstore_channelsummary"

_DELETE = (
    "DELETE FROM chatstore_channelsummary WHERE guild_id = %(guild)s",
    "DELETE FROM chatstore_channel WHERE guild_id = %(guild)s",
    "DELETE FROM chatstore_guild WHERE id = %(guild)s",
)


@pytest.fixture(scope="module")
def guild() -> Iterator[Guild]:
    """Add the channels, and delete them afterwards. Vacuumed both times, which autovacuum would do minutes later."""
    guild = Guild.objects.create(pk=fresh_id(), name="Large harbour")
    execute(_ADD_CHANNELS, _MEASURE, _VACUUM, first=fresh_id() - CHANNELS - 1, guild=guild.pk, count=CHANNELS)
    yield guild
    execute(*_DELETE, _VACUUM, guild=guild.pk)


def execute(*statements: str, **values: int) -> None:
    with as_table_owner(), connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql, values)


@pytest.mark.alone
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("column", ["channel", "state", "tombstones", "bytes", "page", "empty", "uncovered", "purged"])
def test_a_page_of_the_table_takes_at_most_300_ms(
    column: str, sign: str, guild: Guild, otto: User, sign_in: SignIn
) -> None:
    client = sign_in(otto)
    for filtered in ("", f"&server={guild.pk}", f"&server={guild.pk}&state=unknown", "&q=pier 97"):
        path = f"/health/channels/?sort={sign}{column}{filtered}"
        content = read_quickly(client, path)
        assert content.count('scope="row"') == ROWS_PER_PAGE


def read_quickly(client: Client, path: str) -> str:
    """Return the response to a request that takes at most the limit."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = client.get(path)
        times.append((time.perf_counter() - began) * 1_000)
        assert answer.status_code == 200
    assert min(times) <= LIMIT_MS, f"{path}: {times}"
    return answer.content.decode()


TYPED = {
    "the beginning of a name": ("pier 97", True),
    "a letter": ("p", True),
    "a part of a name": ("ier 9", True),
    "the end of a name": ("r 976", True),
    "a name without channels": ("pier 977", False),
    "a word without channels": ("qxzjv", False),
}
"""What a moderator types, and whether channels have it in their names."""


@pytest.mark.alone
@pytest.mark.parametrize("kind", TYPED)
def test_channels_are_suggested_within_300_ms(kind: str, guild: Guild, mona: User, sign_in: SignIn) -> None:
    client, (typed, is_known) = sign_in(mona), TYPED[kind]
    assert ('href="/channels/' in read_quickly(client, f"/find/suggestions/?q={typed}")) == is_known
    for place in ("", f"&guild={guild.pk}"):
        content = read_quickly(client, f"/delete/suggestions/?kind=channels{place}&q={typed}")
        assert bool(json.loads(content)["picks"]) == is_known


@pytest.mark.alone
def test_a_server_and_a_channel_with_its_server_are_suggested_within_300_ms(
    guild: Guild, mona: User, sign_in: SignIn
) -> None:
    client = sign_in(mona)
    for typed in ("Large har", "rge harb", "pier 97 Large harbour", "pier Large"):
        assert guild.name in read_quickly(client, f"/find/suggestions/?q={typed}")
    assert guild.name in read_quickly(client, "/delete/suggestions/?kind=guilds&q=Large har")


@pytest.mark.alone
def test_the_list_beside_a_page_takes_at_most_300_ms(guild: Guild, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    # Servers are listed if there are several.
    make_channel(guild="Elsewhere")
    some = Channel.objects.filter(guild=guild, name="pier 500").latest("pk")
    for path in ("/sidebar/", f"/sidebar/?channel={some.pk}", f"/sidebar/?channel={some.pk}&open=1"):
        content = read_quickly(client, path)
        assert 'class="guilds' in content
        assert (f"/channels/{some.pk}/" in content) == ("channel=" in path)
