"""The table of all channels: sorted by any column in both directions, page by page, filtered, and exported."""

from __future__ import annotations

import datetime as dt
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import unescape

import pytest
from django.test import Client

from chatstore.domain.health import ChannelState
from chatstore.models import Channel, ChannelSummary, Guild
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health.channel_list import COLUMNS, ROWS_PER_PAGE, ChannelQuery, ListedChannel, list_channels
from tests.chatstore.channels import fresh_id
from tests.plans import analyze, explain

SignIn = Callable[[User], Client]

NUMBER = ROWS_PER_PAGE + 10


@dataclass(frozen=True, slots=True)
class Server:
    """A guild of its own name, with more channels than a page has; every fifth was never measured."""

    name: str
    guild: Guild
    channels: Sequence[Channel]


@pytest.fixture(scope="module")
def server() -> Server:
    name = f"harbour {secrets.token_hex(6)}"
    guild = Guild.objects.create(pk=fresh_id(), name=name)
    channels = Channel.objects.bulk_create(
        Channel(id=fresh_id(), guild=guild, name=f"{name} {number % 7}") for number in range(NUMBER)
    )
    now = postgres_now()
    for number, channel in enumerate(channels):
        if number % 5:
            ChannelSummary.objects.filter(channel=channel).update(
                figure_state=ChannelState.HEALTHY, tombstones=number % 4, bytes=number * 1_000, page_us=2_410,
                page_rows=51, page_tombstones=0, page_at=now, tombstones_at=now, bytes_at=now, buckets=7,
                empty_buckets=number % 7, empty_share=(number % 7) / 7, uncovered_deletes=number % 3,
                uncovered_at=now, last_purge_id=number, last_purged_at=now - dt.timedelta(hours=number % 9),
                refreshed_at=now, due_at=None,
            )  # fmt: skip
    analyze(Channel, ChannelSummary)
    return Server(name, guild, channels)


def read(client: Client, query: str, *, status: int = 200) -> str:
    response = client.get(f"/health/channels/?{query}")
    assert response.status_code == status
    return response.content.decode()


def ids_on(html: str) -> list[int]:
    return [
        int(found) for found in re.findall(r'<th scope="row" role="rowheader"><a href="/channels/(\d+)/health/"', html)
    ]


def first_row(html: str) -> str:
    begin = html.index("<tbody")
    return html[begin : html.index("</tr>", begin)]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("is_descending", [True, False])
def test_pages_follow_each_other_in_the_order_of_any_column(
    column: str, is_descending: bool, server: Server, otto: User
) -> None:
    query = ChannelQuery(column=column, is_descending=is_descending, guilds=[server.guild.pk])
    found: list[ListedChannel] = []
    after = ""
    while after or not found:
        page = list_channels(otto, query, after=after, limit=7)
        found += page.channels
        after = page.after
        if not after:
            break
    keys = [(getattr(one.row, "key"), one.row.pk) for one in found]  # noqa: B009 - an annotation
    assert keys == sorted(keys, reverse=is_descending)
    assert {one.row.pk for one in found} == {channel.pk for channel in server.channels}
    assert len(found) == NUMBER


def test_a_page_counts_and_skips_nothing_and_reads_growing_tables_by_index(
    server: Server, otto: User, sign_in: SignIn
) -> None:
    client = sign_in(otto)
    for column in COLUMNS:
        for one in explain(partial(client.get, f"/health/channels/?sort=-{column}")):
            assert not re.search(r"COUNT\(|OFFSET", one.sql), one.sql
            assert not {"chatstore_channel", "chatstore_channelsummary"} & one.scanned, one.sql


def test_the_next_page_keeps_order_and_filters(server: Server, otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    first = read(client, f"sort=-bytes&server={server.name}")
    assert len(ids_on(first)) == ROWS_PER_PAGE
    (link,) = re.findall(r'href="\?([^"]*after=[^"]*)"', first)
    second = read(client, unescape(link))
    assert len(ids_on(second)) == NUMBER - ROWS_PER_PAGE
    assert not set(ids_on(first)) & set(ids_on(second))
    assert "First page" in second
    assert "after=" not in second


def test_channels_are_found_by_server_state_and_beginning_of_the_name(
    server: Server, otto: User, sign_in: SignIn
) -> None:
    client = sign_in(otto)
    everything = {channel.pk for channel in server.channels}
    named = {channel.pk for channel in server.channels if channel.name.endswith(" 3")}
    unmeasured = {channel.pk for channel in server.channels[::5]}
    assert set(ids_on(read(client, f"server={server.guild.pk}&state=unknown"))) == unmeasured
    assert set(ids_on(read(client, f"q=%23{server.name.upper()} 3"))) == named
    assert set(ids_on(read(client, f"server={server.name.upper()}&sort=channel"))) < everything
    assert ids_on(read(client, f"server={server.name}&state=heavy")) == []
    assert "No channels match these filters." in read(client, f"server={server.name}&state=heavy")


def test_a_server_that_does_not_exist_is_no_empty_list(server: Server, otto: User, sign_in: SignIn) -> None:
    client, part = sign_in(otto), server.name[:-1]
    assert f"There is no server “{part}”. Enter its exact name or its ID." in read(client, f"server={part}")
    for form in ("csv", "json"):
        assert client.get(f"/health/channels.{form}?server={part}").status_code == 400, form


def test_a_row_has_the_reason_of_its_state_and_the_age_of_each_figure(
    server: Server, otto: User, sign_in: SignIn
) -> None:
    row = first_row(read(sign_in(otto), f"server={server.name}&sort=-bytes"))
    assert "healthy" in row
    assert "The newest page reads 51\u00a0rows and 0\u00a0tombstones in 2.4\u00a0ms." in row
    assert server.name in row
    assert row.count("Measured ") == 3
    assert "3 of 7 buckets, read " in row
    assert re.search(r"[0-2]\u00a0deletes?<", row)
    assert "since the last full repair of all nodes" in read(sign_in(otto), "")


def test_what_was_never_measured_is_a_dash_with_words_for_screen_readers(
    server: Server, otto: User, sign_in: SignIn
) -> None:
    row = first_row(read(sign_in(otto), f"server={server.name}&state=unknown"))
    assert row.count('aria-hidden="true">–</span><span class="sr">not measured yet</span></td>') == 5
    assert row.count("unknown") == 1, "the state, and no figure"
    assert row.count('title="Never measured."') == 4
    assert 'title="Never counted."' in row
    assert ">none<" in row


@pytest.mark.parametrize(
    "query",
    ["sort=nothing", "state=sick", "after=7", "after=7~x", "after=x~7", "after=7~99999999999999999999", "q=%00",
     "sort=-purged&after=7~2026-01-01", "server=%00", f"q={'x' * 201}"],
)  # fmt: skip
def test_a_query_that_cannot_be_answered_is_refused(query: str, otto: User, sign_in: SignIn) -> None:
    read(sign_in(otto), query, status=400)


@pytest.mark.parametrize("query", ["sort=nothing", "state=sick", "q=%00"])
def test_an_export_of_such_a_query_does_not_begin(query: str, otto: User, sign_in: SignIn) -> None:
    assert sign_in(otto).get(f"/health/channels.csv?{query}").status_code == 400


def test_an_export_has_all_channels_of_the_filters_in_their_order(server: Server, otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    response = client.get(f"/health/channels.json?server={server.name}&sort=-bytes")
    rows = json.loads(response.getvalue())
    assert len(rows) == NUMBER
    sizes = [row["bytes"] for row in rows]
    assert sizes == sorted(sizes, key=lambda size: -1 if size is None else size, reverse=True)
    assert response["Content-Disposition"] == 'attachment; filename="channels.json"'
    text = client.get(f"/health/channels.csv?server={server.name}&sort=-bytes").getvalue().decode()
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == [row["channel_id"] for row in rows]


def test_a_row_shows_the_age_of_its_oldest_figure_once_it_is_over_a_day_old(otto: User, sign_in: SignIn) -> None:
    name = f"old {secrets.token_hex(6)}"
    channel = Channel.objects.create(pk=fresh_id(), name=name)
    now, client = postgres_now(), sign_in(otto)
    row = ChannelSummary.objects.filter(channel=channel)
    row.update(page_us=2_410, page_at=now, tombstones=7, tombstones_at=now - dt.timedelta(hours=23), due_at=None)
    assert "Oldest figure" not in read(client, f"q={name}")
    row.update(tombstones_at=now - dt.timedelta(days=3, hours=1))
    assert "Oldest figure: measured 3 days ago." in first_row(read(client, f"q={name}"))
    row.update(tombstones_at=None, bytes=5_000, bytes_at=now - dt.timedelta(days=9))
    assert "Oldest figure: measured 9 days ago." in first_row(read(client, f"q={name}"))
