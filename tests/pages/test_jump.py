"""The search box suggests channels, users, purges, messages and pages while one types."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from functools import partial

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from chatstore.domain.roles import Role
from chatstore.domain.row_ids import decode_row_id
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import ChatUser, Guild
from chatstore.models.users import User
from chatstore.store.activity import last_active_channels, note_post, posts_of_hour
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.lookup.jump import MAX_CHANNELS, MAX_USERS
from tests.conftest import give, make_user
from tests.moderation.channels import confirm, make_channel, now_ms, old_ids, preview, write
from tests.pages.conftest import PreviewedPurge
from tests.waiting import wait_until

SignIn = Callable[[User], Client]


def suggest(client: Client, query: str) -> str:
    response = client.get("/find/suggestions/", {"q": query})
    assert response.status_code == 200, query
    return response.content.decode()


def test_a_part_of_a_name_suggests_channels_with_their_guild_and_users(mona: User, sign_in: SignIn) -> None:
    word = f"harbour-{secrets.token_hex(6)}"
    channel = make_channel(guild="Tidewalkers & friends", name=word)
    account = ChatUser.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name=f"{word}-keeper")
    html = suggest(sign_in(mona), word)
    assert f'href="/channels/{channel.pk}/#end"' in html
    assert "Tidewalkers &amp; friends" in html
    # Channels of several servers have the same name: the icon of its server is before it.
    icon = rf'<span class="guild-icon tone\d"><span aria-hidden="true">TF</span></span>\s*<bdi class="clip">#{word}<'
    assert re.search(icon, html)
    assert "in the last hour" not in html
    note_post(channel.pk)
    wait_until(lambda: channel.pk in posts_of_hour([channel.pk]))
    assert "· 1 in the last hour" in suggest(sign_in(mona), word)
    assert f'href="/users/{account.pk}/"' in html
    assert re.search(rf'class="avatar s tone\d".*@{account.name} · account created ', html, re.DOTALL)
    client = sign_in(mona)
    assert f"/users/{account.pk}/" not in suggest(client, f"#{word}")
    assert f"/channels/{channel.pk}/" not in suggest(client, f"@{word}")


def test_a_part_of_a_name_suggests_servers_that_one_can_open(mona: User, sign_in: SignIn) -> None:
    word = f"quay-{secrets.token_hex(6)}"
    there, elsewhere = make_channel(guild=f"The {word} crew"), make_channel(guild=f"The {word} club")
    Guild.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name=f"{word} without channels")
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=there.guild_id)
    offered = {
        name: re.findall(r'href="/guilds/(\d+)/"', suggest(sign_in(account), word))
        for name, account in (("mona", mona), ("gus", gus))
    }
    assert offered == {"mona": [str(elsewhere.guild_id), str(there.guild_id)], "gus": [str(there.guild_id)]}
    client = sign_in(gus)
    assert client.get(f"/guilds/{there.guild_id}/").status_code == 302
    assert "/guilds/" not in suggest(client, f"#{word}")


def test_ids_and_links_suggest_what_they_name(mona: User, sign_in: SignIn, previewed: PreviewedPurge) -> None:
    client, channel, purge = sign_in(mona), previewed.channel.pk, previewed.purge.pk
    assert f'href="/purges/{purge}/"' in suggest(client, str(purge))
    assert f'href="/channels/{channel}/#end"' in suggest(client, str(channel))
    message = make_snowflake(now_ms()) + 7
    assert f'href="/find/?q={message}"' in suggest(client, str(message))
    link = f"https://discord.com/channels/1/{channel}/{message}"
    assert f'href="/channels/{channel}/{message}/"' in suggest(client, link)


def test_links_of_this_site_suggest_and_find_what_they_open(
    mona: User, sign_in: SignIn, previewed: PreviewedPurge
) -> None:
    client = sign_in(mona)
    for path in (f"/purges/{previewed.purge.pk}/", f"/channels/{previewed.channel.pk}/"):
        assert f'href="{path}' in suggest(client, f"https://chat.example{path}")
        assert client.get("/find/", {"q": f"https://chat.example{path}"})["Location"] == path
    assert client.get("/find/", {"q": str(previewed.purge.pk)})["Location"] == f"/purges/{previewed.purge.pk}/"


def test_links_and_mentions_that_the_chat_copies_lead_to_their_channel_server_or_user(
    mona: User, sign_in: SignIn
) -> None:
    client, channel = sign_in(mona), make_channel(guild=f"Pier {secrets.token_hex(4)}")
    account = ChatUser.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name="copied")
    path = f"/channels/{channel.pk}/"
    for query in (f"https://discord.com/channels/{channel.guild_id}/{channel.pk}", f"<#{channel.pk}>"):
        assert f'href="{path}#end"' in suggest(client, query), query
        assert client.get("/find/", {"q": query})["Location"] == path, query
    # Another server has no such channel.
    assert path not in suggest(client, f"https://discord.com/channels/{channel.guild_id}1/{channel.pk}")
    html = suggest(client, str(channel.guild_id))
    assert f'href="/guilds/{channel.guild_id}/"' in html
    assert f'href="{path}#end"' in html
    assert "every channel" not in html
    for query in (f"<@{account.pk}>", f"<@!{account.pk}>"):
        assert f'href="/users/{account.pk}/"' in suggest(client, query), query
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=make_channel(guild="Elsewhere").guild_id)
    for query in (f"https://discord.com/channels/{channel.guild_id}/{channel.pk}", str(channel.guild_id)):
        assert "/channels/" not in suggest(sign_in(gus), query).replace(query, ""), query


def test_the_lists_of_own_purges_and_of_what_is_deleted_are_pages(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for title, query in (("my purges", f"by={mona.get_username()}"), ("Recently del", "view=deleted")):
        assert f'href="/purges/?{query}"' in suggest(client, title), title
        assert client.get(f"/purges/?{query}").status_code == 200


def test_the_name_of_a_server_after_that_of_a_channel_narrows_the_suggestions(mona: User, sign_in: SignIn) -> None:
    word = secrets.token_hex(6)
    here, there = (make_channel(guild=f"{name} {word}", name="lobby") for name in ("Quay", "Pier"))
    client = sign_in(mona)
    for query in (f"lobby quay {word}", f"lob Quay {word}", f"#lobby (Quay {word})"):
        html = suggest(client, query)
        assert f'href="/channels/{here.pk}/#end"' in html, query
        assert f"/channels/{there.pk}/" not in html, query


def test_a_text_of_many_words_is_looked_up_by_few_queries(
    mona: User, sign_in: SignIn, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = sign_in(mona)
    with django_assert_max_num_queries(40):
        suggest(client, " ".join(["lobby"] * 50))


def test_a_part_of_its_reason_suggests_a_purge(mona: User, sign_in: SignIn) -> None:
    channel, reason = make_channel(), f"Wave {secrets.token_hex(6)}"
    write(channel, old_ids(1))
    purge = confirm(mona, preview(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(old_ids(1)))))
    Purge.objects.filter(pk=purge.pk).update(reason=reason)
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=make_channel(guild="Elsewhere").guild_id)
    assert f'href="/purges/{purge.pk}/"' in suggest(sign_in(mona), reason.lower())
    assert f"/purges/{purge.pk}/" not in suggest(sign_in(gus), reason)


def test_an_id_says_when_and_where_it_was_made(mona: User, sign_in: SignIn, previewed: PreviewedPurge) -> None:
    client = sign_in(mona)
    of_row = decode_row_id(previewed.purge.pk)
    html = suggest(client, str(previewed.purge.pk))
    assert f"in shard {of_row.shard}, sequence {of_row.sequence}" in html
    assert f'datetime="{of_row.time.isoformat()}"' in html
    message = make_snowflake(1_700_000_000_000, worker=5, sequence=9)
    html = suggest(client, str(message))
    assert "by worker 5, sequence 9" in html
    assert 'datetime="2023-11-14T22:13:20+00:00"' in html


def test_pages_are_suggested_to_those_who_may_open_them(mona: User, otto: User, sign_in: SignIn) -> None:
    assert 'href="/purges/"' in suggest(sign_in(mona), "purg")
    assert 'href="/maintenance/"' not in suggest(sign_in(mona), "mainten")
    assert 'href="/maintenance/"' in suggest(sign_in(otto), "mainten")


def test_texts_that_mean_nothing_suggest_nothing(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for query in ("", "  ", "@", "#", "\x00", "x" * 400, "9" * 25, "99999999999999999999"):
        assert "<a " not in suggest(client, query), query


def is_active(channel_id: int) -> bool:
    return channel_id in last_active_channels(3)


def test_of_many_channels_of_a_name_the_last_active_are_suggested_first(mona: User, sign_in: SignIn) -> None:
    word = f"general-{secrets.token_hex(6)}"
    channels = [make_channel(name=word) for _ in range(MAX_CHANNELS + 4)]
    other = make_channel(name=f"{word}-2")
    for channel in (*channels[:2], other):
        note_post(channel.pk)
        wait_until(partial(is_active, channel.pk))
    client = sign_in(mona)
    # The same name still comes before its beginning.
    first = [str(channels[1].pk), str(channels[0].pk)]
    for path in ("/find/suggestions/", "/find/"):
        html = client.get(path, {"q": word}).content.decode()
        assert re.findall(r'href="/channels/(\d+)/', html)[:2] == first, path
    picks = client.get("/delete/suggestions/", {"kind": "channels", "q": word}).json()["picks"]
    assert [pick["value"] for pick in picks[:2]] == first


def test_channels_of_a_name_are_in_order_where_all_others_are_busier(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = f"general-{secrets.token_hex(6)}"
    channels = [make_channel(name=word) for _ in range(MAX_CHANNELS + 4)]
    for channel in (*channels[:2], make_channel()):
        note_post(channel.pk)
        wait_until(partial(is_active, channel.pk))
    # As if a thousand busier ones were known.
    monkeypatch.setattr("moderation.operations.selection.by_name.MAX_ACTIVE", 1)
    html = sign_in(mona).get("/find/suggestions/", {"q": word}).content.decode()
    assert re.findall(r'href="/channels/(\d+)/', html)[:2] == [str(channels[1].pk), str(channels[0].pk)]


@pytest.mark.parametrize("is_quiet", [False, True])
def test_of_the_channels_of_a_server_the_last_active_are_suggested_first(
    is_quiet: bool, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = f"Quay {secrets.token_hex(6)}"
    guild = Guild.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name=word)
    channels = [make_channel(guild=guild, name=f"{letter}-room") for letter in "abcdefghijklmnopqrstuvwxyz"]
    active = [*channels[-2:], *([make_channel()] if is_quiet else [])]
    for channel in active:
        note_post(channel.pk)
        wait_until(partial(is_active, channel.pk))
    if is_quiet:
        # As if a thousand busier ones were known.
        monkeypatch.setattr("moderation.operations.lookup.channels.MAX_ACTIVE", 1)
    expected = [str(channel.pk) for channel in (channels[-1], channels[-2], *channels[:4])]
    for path in ("/find/suggestions/", "/find/"):
        html = sign_in(mona).get(path, {"q": word}).content.decode()
        assert re.findall(r'href="/channels/(\d+)/', html)[: len(expected)] == expected, path


def test_of_many_users_of_a_name_the_last_active_are_suggested(mona: User, sign_in: SignIn) -> None:
    word, channel, ids = f"victor{secrets.token_hex(6)}", make_channel(), old_ids(1)
    first = make_snowflake(now_ms() - 10**9) | secrets.randbits(12)
    people = [ChatUser.objects.create(pk=first + number, name=word) for number in range(MAX_USERS + 4)]
    write(channel, ids, author=people[-1].pk)
    html = suggest(sign_in(mona), word)
    assert re.findall(r'href="/users/(\d+)/"', html)[0] == str(people[-1].pk)
