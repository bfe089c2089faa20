"""A name that several users or channels have is resolved by a click, without typing an ID."""

from __future__ import annotations

import datetime as dt
import html
import re
import secrets
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.snowflakes import make_snowflake, time_of
from chatstore.models import ChatUser
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.selection import parsing
from moderation.operations.selection.parsing import MAX_CANDIDATES
from tests.moderation.channels import everything, make_channel, old_ids, preview, write
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]

MARCH_2024_MS = 1_710_115_200_000


@pytest.fixture
def victors() -> list[ChatUser]:
    """Create two users with the same display name, both of March 2024."""
    name = f"Victor {secrets.token_hex(4)}"
    return [
        ChatUser.objects.create(
            pk=make_snowflake(MARCH_2024_MS) | secrets.randbits(20) << 1 | n,
            name=f"v{n}-{secrets.token_hex(4)}",
            display_name=name,
        )
        for n in range(2)
    ]


def candidates_of(page: str) -> list[str]:
    """Return the values of the buttons that choose a candidate."""
    return [html.unescape(value) for value in re.findall(r'name="choose" value="([^"]*)"', page)]


def test_users_of_the_same_name_are_told_apart_and_chosen(victors: list[ChatUser], mona: User, sign_in: SignIn) -> None:
    client, url, name = sign_in(mona), f"/channels/{make_channel().pk}/delete/", victors[0].display_name
    refused = client.post(url, {"authors": f"@{name}, 7", "words": "hello"})
    assert refused.status_code == 400
    page = refused.content.decode()
    assert "Which one do you mean?" in page
    for victor in victors:
        assert f"<span>@{victor.name}</span>\n<span>account created 11\u00a0Mar\u00a02024</span>" in page
    chosen = candidates_of(page)
    assert chosen == [f"author:{victor.pk}:@{name}" for victor in sorted(victors, key=lambda user: user.name)]
    page = client.post(url, {"authors": f"@{name}, 7", "words": "hello", "choose": chosen[1]}).content.decode()
    assert f'value="{chosen[1].split(":")[1]}, 7"' in page
    assert re.search(r'name="words"[^>]*value="hello"', page)
    assert candidates_of(page) == []
    # Choosing drafts nothing.
    assert not Purge.objects.filter(moderator=mona).exists()


@pytest.mark.usefixtures("_first_matches_are_complete")
def test_users_of_the_same_name_are_told_apart_by_their_messages_in_the_channel(
    victors: list[ChatUser], mona: User, sign_in: SignIn
) -> None:
    channel, client = make_channel(), sign_in(mona)
    write(channel, old_ids(3), author=victors[1].pk)
    write(make_channel(), old_ids(2), author=victors[0].pk)
    typed = {"authors": victors[0].display_name}
    for page in (
        client.post(f"/channels/{channel.pk}/delete/", typed),
        client.post("/delete/summary/", {**typed, "channels": str(channel.pk)}),
    ):
        pattern = r'<bdi class="dotted quiet small"><span>@(v\d)-.*\n.*\n<span>(\d+\xa0messages here)</span></bdi>'
        notes = re.findall(pattern, page.content.decode())
        assert notes == [("v1", "3\u00a0messages here"), ("v0", "0\u00a0messages here")]


def test_the_summary_offers_similar_names_for_one_that_nobody_has(
    victors: list[ChatUser], mona: User, sign_in: SignIn
) -> None:
    part = victors[0].name[:9]
    page = sign_in(mona).post("/delete/summary/", {"authors": part}).content.decode()
    assert "There is no user called" in page
    assert candidates_of(page) == [f"author:{victors[0].pk}:{part}"]
    page = sign_in(mona).post("/delete/summary/", {"authors": "unknown user " + secrets.token_hex(8)}).content.decode()
    assert "Enter the exact name" in page
    assert candidates_of(page) == []


def test_channels_of_the_same_name_are_told_apart_by_guild_and_category(mona: User, sign_in: SignIn) -> None:
    name = f"pier-{secrets.token_hex(4)}"
    channels = [make_channel(guild=f"Harbour <b>{n}</b>", name=name, category="Piers") for n in range(2)]
    client = sign_in(mona)
    page = client.post("/delete/", {"channels": name, "words": "hello"}).content.decode()
    check_harmless(page)
    assert "<span>Harbour &lt;b&gt;1&lt;/b&gt;</span>\n<span>Piers</span>" in page
    assert candidates_of(page) == [f"channel:{channel.pk}:{name}" for channel in sorted(channels, key=lambda c: c.pk)]
    page = client.post("/delete/", {"channels": name, "choose": candidates_of(page)[0]}).content.decode()
    assert f'value="{min(channel.pk for channel in channels)}"' in page


def make_namesakes(count: int) -> tuple[str, list[int]]:
    """Create users of one display name; return it, and their IDs in the order of their names."""
    name = f"twin {secrets.token_hex(4)}"
    twins = [ChatUser(pk=secrets.randbits(60), name=f"t{n:03}", display_name=name) for n in range(count)]
    ChatUser.objects.bulk_create(twins)
    return name, [twin.pk for twin in twins]


def authors_of(page: str) -> list[int]:
    return [int(value.split(":")[1]) for value in candidates_of(page)]


@pytest.mark.usefixtures("_first_matches_are_complete")
def test_of_many_those_with_the_most_messages_in_the_channels_and_time_are_offered(mona: User, sign_in: SignIn) -> None:
    (name, ids), channel, other = make_namesakes(23), make_channel(), make_channel()
    posts = old_ids(1 + 2 + 3)
    # The last ones by name have messages here, and more of them elsewhere and later have others.
    for number, author in enumerate(ids[-3:]):
        write(channel, posts[number * (number + 1) // 2 :][: number + 1], author=author)
    write(other, old_ids(9), author=ids[0])
    write(channel, old_ids(5, buckets_ago=1), author=ids[1])
    client, until = sign_in(mona), f"{time_of(posts[-1]) + dt.timedelta(days=1):%Y-%m-%d}"
    page = client.post("/delete/summary/", {"authors": name, "channels": str(channel.pk)}).content.decode()
    assert authors_of(page)[:4] == [ids[1], *reversed(ids[-3:])]
    assert len(authors_of(page)) == MAX_CANDIDATES
    assert "8 of 23 shown" in page
    typed = {"authors": name, "channels": str(channel.pk), "before": until}
    page = client.post("/delete/summary/", typed).content.decode()
    assert authors_of(page)[:3] == [*reversed(ids[-3:])]
    assert "3\u00a0messages here in this time" in page


def test_of_many_those_who_posted_last_are_offered_without_a_channel(mona: User, sign_in: SignIn) -> None:
    (name, ids), channel = make_namesakes(MAX_CANDIDATES + 3), make_channel()
    for number, author in enumerate(ids):
        if number:
            write(channel, old_ids(1, buckets_ago=len(ids) + 1 - number), author=author)
    with CaptureQueriesContext(connection) as queries:
        page = sign_in(mona).post("/delete/summary/", {"authors": name}).content.decode()
    assert set(authors_of(page)) == set(ids[-MAX_CANDIDATES:])
    assert f"{MAX_CANDIDATES} of {len(ids)} shown" in page
    assert sum("chatstore_chatuser" in query["sql"] for query in queries) <= 4


def test_so_many_of_one_name_are_not_counted_to_the_end(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MAX_OF_ONE_NAME", 10)
    name, _ = make_namesakes(12)
    page = sign_in(mona).post("/delete/summary/", {"authors": name}).content.decode()
    assert len(candidates_of(page)) == MAX_CANDIDATES
    assert "8 of more than 10 shown" in page


@pytest.mark.parametrize("choice", ["", "author", "author:7", "author:x:Victor", "guild:7:Victor", "author:7:Victor"])
def test_a_malformed_choice_changes_no_other_field(mona: User, sign_in: SignIn, choice: str) -> None:
    typed = {"authors": "unknown, 8", "words": "hello", "choose": choice}
    answer = sign_in(mona).post("/delete/", typed)
    assert answer.status_code == 200
    assert 'value="unknown, 8"' in answer.content.decode()


def handles_of(page: str) -> list[tuple[str, str]]:
    """Return what the rows of messages show beside the authors' names, and after the times."""
    row = r'<bdi class="handle quiet">(.*?)</bdi>.*?<time .*?</time>.*?\n<span class="age quiet">(.*?)</span>'
    return re.findall(row, page, re.DOTALL)


def test_messages_show_the_handles_of_their_authors_and_the_ages_of_the_accounts(
    victors: list[ChatUser], mona: User, sign_in: SignIn
) -> None:
    channel, ids = make_channel(), old_ids(2)
    for victor, message_id in zip(victors, ids, strict=True):
        write(channel, [message_id], author=victor.pk)
    ChatUser.objects.filter(pk=victors[0].pk).update(name="v\u202e<b>")
    client = sign_in(mona)
    purge = preview(mona, everything(channel))
    # The age is after the time of the message, which it would be taken for.
    shown = [(f"@{name}", "account created 11\u00a0Mar\u00a02024") for name in ("v[RLO]&lt;b&gt;", victors[1].name)]
    assert handles_of(client.get(f"/purges/{purge.pk}/").content.decode()) == shown
    assert handles_of(client.get(f"/purges/{purge.pk}/messages/").content.decode()) == shown
    assert handles_of(client.get(f"/channels/{channel.pk}/").content.decode()) == shown


def test_those_of_one_name_and_handle_are_told_apart_by_the_same_end_of_the_id_everywhere(
    victors: list[ChatUser], mona: User, sign_in: SignIn
) -> None:
    channel, ids, handle = make_channel(), old_ids(2), victors[0].name
    ChatUser.objects.filter(pk=victors[1].pk).update(name=handle)
    for victor, message_id in zip(victors, ids, strict=True):
        write(channel, [message_id], author=victor.pk)
    name, client = victors[0].display_name, sign_in(mona)
    purge = preview(mona, Selection(channel_ids=(channel.pk,), where=Author((victors[1].pk,))))
    ends = [f"(...{victor.pk % 10_000:04})" for victor in victors]
    page = client.get(f"/purges/{purge.pk}/").content.decode()
    assert f"by {name} {ends[1]} in" in html.unescape(page)
    assert f"<span>@{handle} {ends[1]}</span>\n<span>account created" in page  # by author
    assert f'<bdi class="handle quiet">@{handle} {ends[1]}</bdi>' in page
    whole = client.get(f"/purges/{preview(mona, everything(channel)).pk}/").content.decode()
    timeline = client.get(f"/channels/{channel.pk}/").content.decode()
    for end in ends:
        assert f"<span>@{handle} {end}</span>\n<span>account created" in whole
        assert f'<bdi class="handle quiet">@{handle} {end}</bdi>' in timeline
    # The user's page and the results of a search.
    for victor, end in zip(victors, ends, strict=True):
        assert f"<bdi>@{handle} {end}</bdi>" in client.get(f"/users/{victor.pk}/").content.decode()
    found = client.get("/find/", {"q": name}).content.decode()
    assert all(f"@{handle} {end}" in found for end in ends)
    # The chips of the composer, what it suggests, and the users between whom it asks.
    chips = client.get(f"/channels/{channel.pk}/delete/", {"authors": victors[1].pk}).content.decode()
    assert f'"facts": ["@{handle} {ends[1]}", ' in html.unescape(chips)
    asked = client.post(f"/channels/{channel.pk}/delete/", {"authors": name}).content.decode()
    assert all(f"<span>@{handle} {end}</span>" in asked for end in ends)
    suggested = client.get("/delete/suggestions/", {"q": name}).content.decode()
    assert all(f"@{handle} {end}" in suggested for end in ends)


def test_of_those_without_a_display_name_messages_show_the_end_of_the_id_only(
    victors: list[ChatUser], mona: User, sign_in: SignIn
) -> None:
    channel, ids = make_channel(), old_ids(2)
    for victor, message_id in zip(victors, ids, strict=True):
        write(channel, [message_id], author=victor.pk)
    url, client = f"/channels/{channel.pk}/", sign_in(mona)
    ChatUser.objects.filter(pk__in=[victor.pk for victor in victors]).update(display_name="")
    assert handles_of(client.get(url).content.decode()) == []
    name = f"twin-{secrets.token_hex(4)}"
    ChatUser.objects.filter(pk__in=[victor.pk for victor in victors]).update(name=name)
    shown = [handle for handle, _age in handles_of(client.get(url).content.decode())]
    assert shown == [f"(...{victor.pk % 10_000:04})" for victor in victors]
