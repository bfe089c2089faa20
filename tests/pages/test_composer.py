"""The composer: prefilled fields, the live summary, and the resulting selection."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from chatstore.models import Channel, ChatUser
from moderation.domain.selection import Selection
from moderation.models import Purge
from tests.moderation.rooms import make_channel
from tests.pages.conftest import Place
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]

NOBODY = str(secrets.randbits(60))
"""An id that is not in the member list."""


def say(client: Client, fields: dict[str, Any]) -> str:
    """Return the text of the live summary."""
    answer = client.post("/remove/sentence/", fields)
    assert answer.status_code == 200
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))


def select(client: Client, path: str, fields: dict[str, Any]) -> Selection:
    """Return the selection of the purge created by the form."""
    response = client.post(path, fields)
    assert response.status_code == 302, html.unescape(response.content.decode())
    purge = Purge.objects.get(pk=int(response["Location"].split("/")[2]))
    return Selection.from_json(purge.selection)


def named_channel() -> Channel:
    channel = make_channel()
    channel.name = f"pier-{secrets.token_hex(4)}"
    channel.save()
    return channel


def test_the_sentence_says_every_condition_and_looks_for_nothing(mona: User, sign_in: SignIn) -> None:
    channels = [named_channel(), named_channel()]
    victor = ChatUser.objects.create(pk=secrets.randbits(60), name=f"vic-{secrets.token_hex(4)}")
    fields = {
        "channels": ", ".join(channel.name for channel in channels),
        "authors": victor.name,
        "after": "2024-05-01",
        "has": ["link"],
        "either-words": "free coins",
        "either-bots": "on",
        "none-reply_to": "https://chat.example/channels/5/77/",
    }
    before = Purge.objects.count()
    said = say(sign_in(mona), fields)
    names = " and ".join(f"#{channel.name}" for channel in channels)
    assert f"All messages by {victor.name} in {names} since 1 May 2024 containing a link" in said
    assert "(containing the words “free coins” or by bots) and not replying to message 77, except pinned" in said
    assert Purge.objects.count() == before


def test_what_is_not_clear_yet_is_said_in_the_same_place(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    assert "Choose who, when or what" in say(client, {"channels": "no-such-channel"})
    assert "There is no user called “Vi”" in say(client, {"authors": "Vi"})
    assert "Enter an author" in say(client, {"words": "coins"})


def test_hostile_names_stay_text_in_the_sentence(mona: User, sign_in: SignIn) -> None:
    name = f"<img src=x onerror=alert(1)>\u202e{secrets.token_hex(3)}"
    author = ChatUser.objects.create(pk=secrets.randbits(60), name=name)
    for fields in ({"authors": str(author.pk)}, {"authors": name}, {"pattern": "(<script>", "words": "</p>"}):
        check_harmless(sign_in(mona).post("/remove/sentence/", fields).content.decode())


def test_what_is_typed_becomes_exactly_that_selection(mona: User, sign_in: SignIn) -> None:
    channel = named_channel()
    fields = {"channels": f"#{channel.name}", "words": "free coins", "none-authors": "12", "with_pinned": "1"}
    selected = select(sign_in(mona), "/remove/", fields)
    assert selected.channel_ids == (channel.pk,)
    assert selected.as_json()["where"] == {"all": [{"words": "free coins"}, {"not": {"author": ["12"]}}]}
    assert selected.with_pinned


def test_an_author_without_a_channel_means_wherever_he_posted(mona: User, sign_in: SignIn) -> None:
    selected = select(sign_in(mona), "/remove/", {"authors": NOBODY})
    assert (selected.channel_ids, selected.guild_id, selected.author_ids) == ((), None, frozenset({int(NOBODY)}))


def test_a_whole_guild_is_chosen_from_the_list(place: Place, mona: User, sign_in: SignIn) -> None:
    client, guild = sign_in(mona), place.channel.guild_id
    page = client.get("/remove/", {"guild": str(guild), "author": NOBODY}).content.decode()
    assert f'<option value="{guild}" selected>Harbour</option>' in page
    assert f'name="authors" value="{NOBODY}"' in page
    assert f"All messages by user {NOBODY} in all channels of Harbour, except pinned" in page
    assert select(client, "/remove/", {"guild": str(guild), "words": "x"}).guild_id == guild


def test_the_channels_own_form_looks_nowhere_else(place: Place, mona: User, sign_in: SignIn) -> None:
    fields = {"channels": "1, 2", "guild": "3", "words": "coins"}
    assert select(sign_in(mona), f"/channels/{place.channel.pk}/remove/", fields).channel_ids == (place.channel.pk,)


def test_the_whole_channel_goes_when_its_name_is_typed(place: Place, mona: User, sign_in: SignIn) -> None:
    fields = {"everything": "1", "channel_name": "#Room"}
    assert select(sign_in(mona), f"/channels/{place.channel.pk}/remove/", fields).everything


def test_widening_to_other_channels_keeps_what_was_typed(place: Place, mona: User, sign_in: SignIn) -> None:
    fields = {"channels": str(place.channel.pk), "words": "coins", "widen": "1"}
    page = sign_in(mona).post("/remove/", fields).content.decode()
    assert f'name="channels" value="{place.channel.pk}"' in page
    assert 'name="words" value="coins"' in page
    assert "All messages in #room containing the words “coins”, except pinned" in page


def test_only_what_was_filled_in_is_unfolded(place: Place, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/channels/{place.channel.pk}/remove/"
    assert client.get(path).content.decode().count("<details") - 2 == 4  # the account's menu, the strip's table
    assert " open>" not in client.get(path, {"authors": "12"}).content.decode()
    assert '<details class="more" open>' in client.get(path, {"words": "coins"}).content.decode()
