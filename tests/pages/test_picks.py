"""Suggestions for the composer's fields of names, how many messages the users have, and what is chosen already."""

from __future__ import annotations

import html
import json
import re
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.domain.snowflakes import make_snowflake, time_of
from chatstore.models import ChatUser
from chatstore.models.users import User
from moderation.operations.preview import first_matches
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, old_ids, write

pytestmark = pytest.mark.usefixtures("_first_matches_are_complete")

SignIn = Callable[[User], Client]

MARCH_2024_MS = 1_710_115_200_000


def picks_of(client: Client, **query: str | int) -> list[dict[str, Any]]:
    response = client.get("/delete/suggestions/", query)
    assert response.status_code == 200
    picks: list[dict[str, Any]] = response.json()["picks"]
    return picks


def make_author(name: str) -> ChatUser:
    user_id = make_snowflake(MARCH_2024_MS) | secrets.randbits(22)
    return ChatUser.objects.create(pk=user_id, name=name, display_name=f"The {name}")


def test_a_user_has_a_name_a_handle_an_avatar_and_the_age_of_the_account(mona: User, sign_in: SignIn) -> None:
    author = make_author(f"wilma{secrets.token_hex(6)}")
    (pick,) = picks_of(sign_in(mona), kind="people", q=f"@{author.name[:-2]}")
    assert pick["value"] == str(author.pk)
    assert pick["label"] == f"The {author.name}"
    assert pick["facts"] == [f"@{author.name}", "account created 11\u00a0Mar\u00a02024"]
    assert pick["avatar"][1] == "TW"


def test_an_id_finds_its_user(mona: User, sign_in: SignIn) -> None:
    author = make_author(f"wilma{secrets.token_hex(6)}")
    client = sign_in(mona)
    assert [pick["value"] for pick in picks_of(client, kind="people", q=author.pk)] == [str(author.pk)]
    assert picks_of(client, kind="people", q=str(secrets.randbits(62))) == []


def test_channels_are_suggested_where_one_may_delete_not_where_one_may_only_read(sign_in: SignIn) -> None:
    name = f"pier-{secrets.token_hex(6)}"
    here, there = (make_channel(guild="Harbour", name=name) for _ in range(2))
    gina = make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=here.guild_id)
    give(gina, Role.AUDITOR, guild_id=there.guild_id)
    assert [pick["value"] for pick in picks_of(sign_in(gina), kind="channels", q=name)] == [str(here.pk)]


def test_a_channel_has_its_guild_and_category_and_a_guild_narrows_the_list(mona: User, sign_in: SignIn) -> None:
    name = f"pier-{secrets.token_hex(6)}"
    one, other = (make_channel(guild="Harbour", name=name, category=category) for category in ("Docks", ""))
    client = sign_in(mona)
    found = {pick["value"]: (pick["label"], pick["facts"]) for pick in picks_of(client, kind="channels", q=name[:-2])}
    assert found == {str(one.pk): (f"#{name}", ["Harbour", "Docks"]), str(other.pk): (f"#{name}", ["Harbour"])}
    narrowed = picks_of(client, kind="channels", q=name, guild=other.guild_id or 0)
    assert [pick["value"] for pick in narrowed] == [str(other.pk)]


def test_guilds_are_suggested_by_a_part_of_the_name_where_one_may_delete(sign_in: SignIn) -> None:
    word = secrets.token_hex(6)
    here, there, read = (make_channel(guild=f"The {word} {kind}") for kind in ("club", "crew", "choir"))
    gina = make_user("gina", group=None)
    for channel in (here, there):
        give(gina, Role.MODERATOR, guild_id=channel.guild_id)
    give(gina, Role.AUDITOR, guild_id=read.guild_id)
    client, ids = sign_in(gina), [str(here.guild_id), str(there.guild_id)]
    assert [pick["value"] for pick in picks_of(client, kind="guilds", q=word.upper())] == ids
    assert [pick["label"] for pick in picks_of(client, kind="guilds", q=ids[1])] == [f"The {word} crew"]
    assert picks_of(client, kind="guilds", q=str(read.guild_id)) == []
    # Before anything is typed, the first ones are offered.
    assert [pick["value"] for pick in picks_of(client, kind="guilds", q="")] == ids


def test_guilds_with_the_same_name_are_told_apart_by_their_ids(mona: User, sign_in: SignIn) -> None:
    name = f"Harbour {secrets.token_hex(6)}"
    ids = {str(make_channel(guild=name).guild_id) for _ in range(2)}
    found = picks_of(sign_in(mona), kind="guilds", q=name)
    assert {pick["value"] for pick in found} == ids
    assert all(pick["facts"] == [f"ID {pick['value']}"] for pick in found)


def test_messages_are_counted_in_the_channels_that_are_chosen(mona: User, sign_in: SignIn) -> None:
    one, other = make_channel(), make_channel()
    author, silent = make_author("wilma"), make_author("silent")
    write(one, old_ids(3), author=author.pk)
    write(other, old_ids(5), author=author.pk)
    client = sign_in(mona)
    people = f"{author.pk},{silent.pk}"
    counted = client.post("/delete/counts/", {"people": people, "channels": str(one.pk), "words": "hello"}).json()
    assert counted == {"counts": {str(author.pk): "3\u00a0messages here", str(silent.pk): "0\u00a0messages here"}}
    everywhere = client.post("/delete/counts/", {"people": people}).json()
    assert everywhere["counts"][str(author.pk)] == "8\u00a0messages"


def test_messages_are_counted_in_the_time_that_is_chosen(mona: User, sign_in: SignIn) -> None:
    channel, author, ids = make_channel(), make_author("wilma"), old_ids(5)
    write(channel, ids, author=author.pk)
    client, place = sign_in(mona), {"people": str(author.pk), "channels": str(channel.pk)}
    for time, expected in (
        ({"after": time_of(ids[2]).isoformat()}, "3\u00a0messages here in this time"),
        ({"before": time_of(ids[2]).isoformat()}, "2\u00a0messages here in this time"),
        ({"after": "no time"}, "5\u00a0messages here"),
        ({"after": "9" * 10_000}, "5\u00a0messages here"),
    ):
        counted = client.post("/delete/counts/", place | time).json()
        assert counted == {"counts": {str(author.pk): expected}}, time


def test_a_count_that_is_not_complete_is_a_lower_bound(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    author, silent = make_author("wilma"), make_author("silent")
    write(make_channel(), old_ids(2), author=author.pk)
    client, people = sign_in(mona), f"{author.pk},{silent.pk}"
    monkeypatch.setattr(first_matches, "SECONDS", -1.0)
    counted = client.post("/delete/counts/", {"people": str(author.pk)}).json()
    assert counted["counts"][str(author.pk)] == "2\u00a0messages"
    monkeypatch.setattr(first_matches, "READS_AHEAD", 1)
    write(make_channel(), old_ids(3, buckets_ago=5), author=author.pk)
    counted = client.post("/delete/counts/", {"people": people}).json()
    assert counted["counts"][str(silent.pk)] == ""
    assert counted["counts"][str(author.pk)].startswith("2\u00a0")
    assert counted["counts"][str(author.pk)].endswith(" or more")


def test_what_the_fields_contain_is_described(mona: User, sign_in: SignIn) -> None:
    author, channel = make_author(f"wilma{secrets.token_hex(6)}"), make_channel(guild="Harbour", name="pier")
    query = {
        "authors": f"{author.name}, nobody-{author.pk}, <b>",
        "channels": str(channel.pk),
        "guild": str(channel.guild_id),
    }
    page = sign_in(mona).get("/delete/", query).content.decode()
    fields = [json.loads(html.unescape(text)) for text in re.findall(r'data-picks="([^"]*)"', page)]
    channels, guild, excepted, authors, *others = fields
    assert [(pick["value"], pick["label"]) for pick in channels] == [(str(channel.pk), "#pier")]
    assert guild == [{"value": query["guild"], "label": "Harbour", "facts": [], "avatar": None}]
    assert excepted == []
    assert [pick["value"] for pick in authors] == [str(author.pk), f"nobody-{author.pk}", "<b>"]
    assert authors[1]["avatar"] is None
    assert others == [[], []]
    # Without the script the field has what was typed.
    assert f'value="{html.escape(query["authors"])}"' in page


def test_odd_queries_are_answered(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for kind in ("people", "channels", "x"):
        for typed in ("", "@", "#", "\x00", "a" * 300, "-", "9" * 30):
            assert picks_of(client, kind=kind, q=typed) == []
    for people in ("", "x", "1,2,x", "9" * 30, ",".join(map(str, range(200)))):
        assert client.post("/delete/counts/", {"people": people}).json() == {"counts": {}}
    assert client.get("/delete/suggestions/", {"kind": "channels", "q": "a", "guild": "x"}).status_code == 400


def test_only_those_who_may_purge_can_ask(sign_in: SignIn) -> None:
    reader = sign_in(make_user("otto", group="operators"))
    assert reader.get("/delete/suggestions/", {"kind": "people", "q": "vic"}).status_code == 403
    assert reader.post("/delete/counts/", {"people": "1"}).status_code == 403
