"""First matches beside the composer, while the form is filled in."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.operations.preview import first_matches
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, WILMA, make_channel, old_ids, recent_ids, write

pytestmark = pytest.mark.usefixtures("_first_matches_are_complete")

SignIn = Callable[[User], Client]


def matches_of(client: Client, **fields: str | int) -> str:
    """Post the form and return the matches as text."""
    response = client.post("/delete/matches/", {name: str(value) for name, value in fields.items()})
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode()))


@pytest.fixture
def channel() -> Channel:
    """Create a channel of a guild with twelve messages, of two authors and in two buckets."""
    channel = make_channel(guild="Harbour")
    write(channel, old_ids(6), content="cheap coins")
    write(channel, old_ids(4, buckets_ago=8), content="cheap coins")
    write(channel, recent_ids(2), author=WILMA, content="good morning")
    return channel


def test_they_are_counted_and_the_newest_are_shown(channel: Channel, mona: User, sign_in: SignIn) -> None:
    text = matches_of(sign_in(mona), channels=channel.pk, authors=VICTOR)
    assert " 10 matches " in text
    assert "Everything was searched." in text
    newest = [str(i) for i in old_ids(6)[:0:-1]]
    assert re.findall(r"cheap coins (\d+)", text) == newest
    assert text.count("#room (Harbour)") == first_matches.MATCHES_SHOWN


@pytest.mark.parametrize(
    ("fields", "count"),
    [({"words": "morning"}, 2), ({"any_words": "coins morning"}, 12), ({"words": "never"}, 0), ({"has": "link"}, 0)],
)
def test_every_condition_counts(
    channel: Channel, mona: User, sign_in: SignIn, fields: dict[str, str], count: int
) -> None:
    text = matches_of(sign_in(mona), channels=channel.pk, **fields)
    assert re.search(rf" {count} match(es)? ", text)


def test_channels_that_they_mention_are_named(channel: Channel, mona: User, sign_in: SignIn) -> None:
    pier = make_channel(guild=channel.guild, name="pier")
    write(channel, recent_ids(1), content=f"meet in <#{pier.pk}>")
    assert " meet in #pier " in matches_of(sign_in(mona), channels=channel.pk, words="meet")


def test_a_guild_is_searched_and_kept_channels_are_not(channel: Channel, mona: User, sign_in: SignIn) -> None:
    other = make_channel(guild=channel.guild)
    write(other, recent_ids(3), author=WILMA, content="good morning")
    client = sign_in(mona)
    assert " 5 matches " in matches_of(client, guild=channel.guild_id or 0, words="morning")
    kept = matches_of(client, guild=channel.guild_id or 0, words="morning", except_channels=other.pk)
    assert " 2 matches " in kept


def test_at_the_deadline_it_says_how_far_it_searched(
    channel: Channel, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_matches, "PAGE_ROWS", 2)
    monkeypatch.setattr(first_matches, "READS_AHEAD", 2)
    monkeypatch.setattr(first_matches, "SECONDS", -1.0)
    text = matches_of(sign_in(mona), channels=channel.pk, words="coins")
    # Of the two newest buckets one page each.
    assert " 2 or more matches " in text
    assert "Searched completely back to" in text
    other = make_channel()
    Channel.objects.filter(pk=other.pk).update(guild=channel.guild)
    write(other, recent_ids(3, minutes_ago=5), content="good evening")
    text = matches_of(sign_in(mona), guild=channel.guild_id or 0, words="evening")
    assert " 2 or more matches " in text
    assert "Searched a part. The preview searches everything." in text


def test_a_search_that_met_nothing_newer_says_back_to_when(
    channel: Channel, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_matches, "READS_AHEAD", 1)
    monkeypatch.setattr(first_matches, "SECONDS", -1.0)
    text = matches_of(sign_in(mona), channels=channel.pk, words="coins")
    assert "None found yet" in text
    assert re.search(r"Searched completely back to \d+ \w+ \d{4}, \d\d:\d\d \. The preview searches everything\.", text)


def test_the_newest_buckets_are_read_also_if_the_time_is_over_before_the_first(
    channel: Channel, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_matches, "SECONDS", -1.0)
    for number in range(first_matches.READS_AHEAD):
        write(channel, old_ids(1, buckets_ago=10 + number), content="cheap coins")
    text = matches_of(sign_in(mona), channels=channel.pk, words="coins")
    # Of the last three days, of two older buckets, and of three of the oldest ones.
    assert f" {6 + 4 + first_matches.READS_AHEAD - 3} or more matches " in text
    assert "Searched completely back to" in text


def test_what_an_author_posted_elsewhere_hides_no_match_in_the_chosen_channel(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_matches, "MAX_PLACES", 2)
    author, channel = secrets.randbits(60), make_channel()
    write(channel, old_ids(6, buckets_ago=9), author=author)
    for other in (make_channel(), make_channel(), make_channel()):
        write(other, old_ids(1), author=author)
    text = matches_of(sign_in(mona), channels=channel.pk, authors=author)
    assert " 6 matches " in text
    assert "Everything was searched." in text


def test_more_channels_than_are_searched_give_a_lower_bound(
    channel: Channel, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_channel(guild=channel.guild)
    write(other, recent_ids(3), content="good morning")
    monkeypatch.setattr(first_matches, "MAX_CHANNELS", 1)
    text = matches_of(sign_in(mona), guild=channel.guild_id or 0, words="morning")
    assert " 3 or more matches " in text
    assert "Searched a part." in text


def test_an_incomplete_form_shows_none(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for fields in ({}, {"words": "coins"}, {"authors": "nobody-is-called-that"}, {"after": "never", "channels": "1"}):
        assert "The newest matches appear here" in matches_of(client, **fields)


def test_only_those_who_may_purge_can_ask(channel: Channel, sign_in: SignIn) -> None:
    reader = sign_in(make_user("otto", group="operators"))
    assert reader.post("/delete/matches/", {"channels": str(channel.pk), "words": "coins"}).status_code == 403


def test_hostile_texts_are_escaped(channel: Channel, mona: User, sign_in: SignIn) -> None:
    write(channel, recent_ids(1, minutes_ago=5), content="<script>alert(1)</script>")
    html = sign_in(mona).post("/delete/matches/", {"channels": str(channel.pk), "words": "script"}).content.decode()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
