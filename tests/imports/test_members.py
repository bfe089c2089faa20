"""Imports store icons of guilds, roles of authors, and when they joined."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.members import MemberRole
from chatstore.domain.snowflakes import time_of
from chatstore.models import Guild, GuildMember
from chatstore.operations.members import names_of_roles
from tests.imports.exports import MAY, fresh_channel, ids_from, make_export, make_raw, make_user, run_import

ONE, TWO, THREE = (secrets.randbits(60) for _ in range(3))
"""Authors that no other test names."""

ICON = "https://cdn.example/icons/1/a.png?size=512"
CREW = {"id": "5", "name": "Crew", "color": "#1AC2B5", "position": 2}
CAPTAIN = {"id": "6", "name": "Captain", "color": None, "position": 9}


@pytest.fixture
def guild_id() -> int:
    return secrets.randbits(60)


def import_messages(
    folder: Path, guild_id: int, raws: list[dict[str, Any]], *, icon: Any = ICON, kind: str = "GuildTextChat"
) -> Path:
    export = make_export(fresh_channel(), raws, type=kind)
    export["guild"] = {"id": str(guild_id), "name": "Harbour", "iconUrl": icon}
    path = folder / f"{secrets.token_hex(4)}.json"
    path.write_text(json.dumps(export))
    run_import(path)
    return path


def join_message(message_id: int, author: int) -> dict[str, Any]:
    return make_raw(message_id, author=author, type="GuildMemberJoin", content="Joined the server.")


def joins_of(guild_id: int) -> dict[int, dt.datetime | None]:
    return dict(GuildMember.objects.filter(guild_id=guild_id).values_list("user_id", "joined_at"))


def test_the_message_about_a_join_gives_its_time_and_the_newest_one_counts(tmp_path: Path, guild_id: int) -> None:
    first, again, other, talk = ids_from(MAY, 4, apart_seconds=3600)
    raws = [join_message(again, ONE), join_message(first, ONE), join_message(other, TWO), make_raw(talk, author=THREE)]
    path = import_messages(tmp_path, guild_id, raws)
    assert joins_of(guild_id) == {ONE: time_of(again), TWO: time_of(other)}
    # An older file that is imported later, and the same file again, change nothing.
    import_messages(tmp_path, guild_id, [join_message(first, ONE), make_raw(talk, author=TWO)])
    run_import(path)
    assert joins_of(guild_id) == {ONE: time_of(again), TWO: time_of(other)}


def test_roles_are_named_by_their_ids(tmp_path: Path, guild_id: int) -> None:
    (one,) = ids_from(MAY, 1)
    author = make_user(ONE, roles=[{**CREW, "id": str(guild_id + 1)}, {**CAPTAIN, "id": "x"}])
    import_messages(tmp_path, guild_id, [make_raw(one, author=ONE) | {"author": author}])
    assert names_of_roles([guild_id], [guild_id + 1]) == {guild_id: {guild_id + 1: "Crew"}}


def test_roles_are_kept_highest_first_and_none_means_unknown(tmp_path: Path, guild_id: int) -> None:
    one, two, three = ids_from(MAY, 3)
    author = make_user(ONE, roles=[CREW, CAPTAIN, {"name": 7}, "x", {"name": " ", "position": 99}])
    import_messages(tmp_path, guild_id, [make_raw(one, author=ONE) | {"author": author}, make_raw(two, author=TWO)])
    member = GuildMember.objects.get(guild_id=guild_id)
    assert (member.user_id, member.member_roles) == (ONE, (MemberRole("Captain"), MemberRole("Crew", "#1ac2b5")))
    # Who has left has no roles in an export.
    import_messages(tmp_path, guild_id, [make_raw(three, author=ONE)])
    assert GuildMember.objects.get(guild_id=guild_id).member_roles == member.member_roles


def test_direct_messages_have_no_members(tmp_path: Path, guild_id: int) -> None:
    [message_id] = ids_from(MAY, 1)
    author = make_user(guild_id, roles=[CREW])
    raw = join_message(message_id, guild_id) | {"author": author}
    import_messages(tmp_path, 0, [raw], kind="DirectTextChat")
    assert not GuildMember.objects.filter(user_id=guild_id).exists()


@pytest.mark.parametrize(
    "icon", [None, 7, "", "pier_Files/icon.png", "http://cdn.example/a.png", "https://cdn.example/embed/avatars/0.png"]
)
def test_an_icon_that_is_unknown_or_a_placeholder_replaces_none(tmp_path: Path, guild_id: int, icon: Any) -> None:
    raws = [make_raw(message_id) for message_id in ids_from(MAY, 2)]
    import_messages(tmp_path, guild_id, raws)
    assert Guild.objects.get(pk=guild_id).icon_url == ICON
    import_messages(tmp_path, guild_id, raws, icon=icon)
    assert Guild.objects.get(pk=guild_id).icon_url == ICON


def test_members_of_a_load_are_written_by_one_statement(tmp_path: Path, guild_id: int) -> None:
    raws = [join_message(message_id, guild_id + number) for number, message_id in enumerate(ids_from(MAY, 900))]
    with CaptureQueriesContext(connection) as captured:
        import_messages(tmp_path, guild_id, raws)
    assert len([query for query in captured if "INSERT INTO chatstore_guildmember" in query["sql"]]) == 1
    assert len(joins_of(guild_id)) == 900
