"""The page of results lists servers, channels, users and purges; one channel alone is opened."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.lookup import jump
from tests.conftest import give, make_user
from tests.moderation.channels import everything, make_channel, old_ids, preview, purge_now, write

SignIn = Callable[[User], Client]


def find(client: Client, query: str) -> str:
    response = client.get("/find/", {"q": query})
    assert response.status_code == 200, query
    return response.content.decode()


@pytest.fixture
def purge(mona: User) -> Purge:
    """A purge in a server of its own, with a reason that no other has."""
    channel = make_channel(guild=f"Lighthouse {secrets.token_hex(6)}")
    write(channel, old_ids(1))
    purge = purge_now(mona, everything(channel))
    Purge.objects.filter(pk=purge.pk).update(reason=f"Wave of {secrets.token_hex(6)} bots")
    purge.refresh_from_db()
    return purge


def test_a_part_of_a_reason_lists_purges_however_old(
    purge: Purge, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # While one types, only the newest are searched.
    monkeypatch.setattr(jump, "PURGES_SEARCHED", 0)
    text = purge.reason[:16].lower()
    client, link = sign_in(mona), f'href="/purges/{purge.pk}/"'
    assert link not in client.get("/find/suggestions/", {"q": text}).content.decode()
    html = find(client, text)
    assert link in html
    assert purge.reason in html
    assert "No results" not in html


def test_while_one_types_only_recent_purges_are_searched_and_the_box_says_so(
    purge: Purge, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a server in which no other test confirms purges.
    channel, gina = Channel.objects.get(pk=purge.selection["channels"][0]), make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=channel.guild_id)
    client, link = sign_in(gina), f'href="/purges/{purge.pk}/"'
    none = "No server, channel, user, recent purge or page has this name."
    monkeypatch.setattr(jump, "PURGES_SEARCHED", 2)
    for number, is_recent in enumerate((True, True, False)):
        suggested = client.get("/find/suggestions/", {"q": purge.reason}).content.decode()
        assert ((link in suggested), (none in suggested)) == (is_recent, not is_recent)
        write(channel, old_ids(1, buckets_ago=4 + number))
        purge_now(gina, everything(channel))
    assert link in find(client, purge.reason)


def test_purges_elsewhere_and_very_short_texts_list_none(purge: Purge, mona: User, sign_in: SignIn) -> None:
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=make_channel(guild="Elsewhere").guild_id)
    assert f"/purges/{purge.pk}/" not in find(sign_in(gus), purge.reason)
    assert f"/purges/{purge.pk}/" not in find(sign_in(mona), purge.reason[:2])


def test_a_preview_is_not_listed_by_a_reason(mona: User, sign_in: SignIn) -> None:
    channel, reason = make_channel(), f"Draft {secrets.token_hex(6)}"
    write(channel, old_ids(1))
    draft = preview(mona, everything(channel))
    Purge.objects.filter(pk=draft.pk).update(reason=reason)
    assert f"/purges/{draft.pk}/" not in find(sign_in(mona), reason)


def test_a_part_of_a_servers_name_lists_it_with_its_channels(purge: Purge, mona: User, sign_in: SignIn) -> None:
    channel = Channel.objects.get(pk=purge.selection["channels"][0])
    assert channel.guild is not None
    html = find(sign_in(mona), channel.guild.name)
    assert f'href="/guilds/{channel.guild_id}/"' in html
    assert f'href="/channels/{channel.pk}/#end"' in html
    # After "#", the server is only named as that of the channel.
    only_channel = sign_in(mona).get("/find/", {"q": f"#{channel.guild.name}"})
    assert only_channel["Location"] == f"/channels/{channel.pk}/"


def test_one_channel_alone_is_opened(mona: User, sign_in: SignIn) -> None:
    channel = make_channel(name=f"buoy-{secrets.token_hex(6)}")
    assert sign_in(mona).get("/find/", {"q": channel.name})["Location"] == f"/channels/{channel.pk}/"
