"""Every page of a purge names the guild of each channel: several guilds have a channel called #general."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Hold, RaidSettings
from moderation.operations.access.audit import save_with_next_id
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import VICTOR, make_channel, old_ids, preview, purge_now, write

SignIn = Callable[[User], Client]


@pytest.fixture
def channels() -> list[Channel]:
    """Create two channels called #general in guilds of their own, each with ten messages of Victor."""
    made, ids = [], old_ids(20)
    for number in range(2):
        channel = make_channel(guild=f"Guild {number}", name="general")
        write(channel, ids[10 * number : 10 * number + 10])
        made.append(channel)
    return made


@pytest.mark.parametrize(
    "path",
    [
        "",
        *(f"chatstore/{model}/{page}" for model in ("guild", "channel") for page in ("?q=Harbour", "add/")),
        *(f"moderation/raidsettings/{page}" for page in ("?q=Harbour", "add/", "{}/change/")),
    ],
)
def test_the_admin_calls_a_guild_a_server(path: str, ada: User, sign_in: SignIn) -> None:
    # Other tests have servers that are called "Guild", too: lists are searched for the one that is not.
    for name in ("Guild", "Harbour"):
        guild = Guild.objects.create(pk=fresh_id(), name=name)
        RaidSettings.objects.create(guild=guild)
    response = sign_in(ada).get(f"/admin/{path.format(guild.pk)}")
    assert response.status_code == 200
    shown = re.sub(r"<script.*?</script>|<[^>]*>", " ", response.content.decode(), flags=re.DOTALL)
    words = set(re.findall(r"\w+", shown.lower()))
    assert not {"guild", "guilds"} & words
    assert {"server", "servers"} & words


def test_a_channel_without_a_guild_has_its_own_name_only() -> None:
    assert make_channel().full_name == "#room"
    assert Channel(name="ann, bob", kind=Channel.Kind.DIRECT).full_name == "ann, bob"


@pytest.mark.parametrize("page", ["", "messages/", "undo/"])
def test_the_pages_of_a_purge_name_the_guild_of_each_channel(
    channels: list[Channel], mona: User, sign_in: SignIn, page: str
) -> None:
    both = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    for purge in (preview(mona, both), purge_now(mona, both)):
        if page != "undo/" or purge.confirmed_at:
            html = sign_in(mona).get(f"/purges/{purge.pk}/{page}").content.decode()
            for channel in channels:
                assert f"#general ({channel.guild})" in html
            # Nowhere without its guild, except where the guild follows in an element of its own.
            bare = html.replace("#general (", "").count("#general")
            assert bare == (len(channels) if page == "undo/" else 0)


def test_lists_of_purges_and_holds_name_the_guild(channels: list[Channel], mona: User, sign_in: SignIn) -> None:
    first = channels[0]
    purge = preview(mona, Selection(channel_ids=(first.pk,), where=Author((VICTOR,))))
    save_with_next_id(Hold(channel_id=first.pk, reason="court order", placed_by=mona))
    for path in (f"/purges/?channel={first.pk}", "/purges/?state=ready", "/holds/", f"/purges/{purge.pk}/"):
        assert f"#general ({first.guild})" in sign_in(mona).get(path).content.decode(), path
