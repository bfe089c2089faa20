"""A raid is told from a busy evening by who writes and what, not by the number of messages alone."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import DAY_MS, HOUR_MS, YEAR_MS
from chatstore.domain.snowflakes import make_snowflake, unix_ms
from moderation.domain.first_seen import FirstSeen
from moderation.domain.raids import Assessment, Limits, Sign, assess_messages

pytestmark = pytest.mark.unit

NOW_MS = unix_ms(dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC))
CHANNEL = 7
SPAM = "free coins for everybody at https://coins.example"
OLD, NEW = 3 * YEAR_MS, HOUR_MS

WORDS = (
    "tonight steering anchor before nine leviathan really longboat please ready side left wave enormous hat lost "
    "saltmarsh repair mast dinner two more fog thicker since update crew harbour lantern oil compass north storm "
    "calm wind ropes knots deck cabin gull rock treasure map"
).split()


def account(number: int, *, age_ms: int) -> int:
    return make_snowflake(NOW_MS - age_ms, sequence=number)


def say(author: int, content: str, *, seconds_ago: float) -> Message:
    message_id = make_snowflake(NOW_MS - round(seconds_ago * 1000), worker=author % 1024)
    return Message(CHANNEL, message_id, author, content)


def raid_messages(accounts: int = 12, each: int = 5, *, age_ms: int = NEW, text: str = SPAM) -> list[Message]:
    """Messages of several accounts within about two minutes."""
    return [
        say(account(number, age_ms=age_ms), f"{text} {turn}", seconds_ago=120 - 20 * turn - number)
        for turn in range(each)
        for number in range(accounts)
    ]


def talk_messages(accounts: int = 8, each: int = 12, *, age_ms: int = OLD, skip: int = 0) -> list[Message]:
    """Varied talk, faster than a raid: no two messages are alike."""
    return [
        say(
            account(100 + number, age_ms=age_ms),
            " ".join(random.Random(skip + turn * accounts + number).sample(WORDS, 7)),
            seconds_ago=100 - 8 * turn - number,
        )
        for turn in range(each)
        for number in range(accounts)
    ]


def assess(
    messages: Sequence[Message],
    *,
    first_seen_ms: int | None = None,
    bots: frozenset[int] = frozenset(),
    limits: Limits = Limits(),  # noqa: B008
) -> Assessment:
    """Assess with everybody first seen so long ago; by default new accounts just now, the others three years ago."""
    seen = {}
    for message in messages:
        is_new = message.author_id > make_snowflake(NOW_MS - DAY_MS)
        ms = NOW_MS - (first_seen_ms if first_seen_ms is not None else 0 if is_new else OLD)
        seen[message.author_id] = FirstSeen(ms, ms)
    return assess_messages(messages, first_seen=seen, bots=bots, limits=limits, now_ms=NOW_MS)


def participants(assessment: Assessment) -> set[int]:
    return {one.author_id for one in assessment.participants}


def test_new_accounts_that_repeat_a_text_are_a_raid_and_everybody_else_is_spared() -> None:
    raid, talk = raid_messages(), talk_messages()
    found = assess([*talk, *raid])
    assert found.is_raid
    assert participants(found) == {message.author_id for message in raid}
    assert found.count == len(raid)
    assert (found.first_id, found.last_id) == (
        min(message.message_id for message in raid),
        max(message.message_id for message in raid),
    )
    assert set(found.participants[0].signs) == {Sign.YOUNG, Sign.FIRST_SEEN, Sign.SAME_TEXT, Sign.LINKS}
    (group,) = (group for group in found.similar if SPAM in group.texts[0])
    assert (group.count, group.author_ids) == (len(raid), participants(found))


def test_a_game_night_of_old_members_is_no_raid() -> None:
    found = assess(talk_messages())
    assert not found.is_raid
    assert not found.participants


def test_a_game_night_with_some_new_members_is_no_raid() -> None:
    found = assess([*talk_messages(), *talk_messages(3, each=4, age_ms=NEW, skip=96)])
    assert not found.is_raid
    assert not found.participants


def test_old_members_who_all_copy_one_joke_are_no_raid() -> None:
    found = assess(raid_messages(age_ms=OLD, each=8, text="the kraken choir sings at midnight, bring earplugs"))
    assert not found.is_raid


def test_old_members_who_share_a_link_or_a_joke_are_spared_in_a_raid() -> None:
    members = [account(200 + number, age_ms=OLD) for number in range(5)]
    links = [say(member, "the stream: https://tidewalkers.example/streams/5", seconds_ago=50) for member in members]
    jokes = [
        say(member, "the kraken choir sings at midnight", seconds_ago=40 - n) for n in range(8) for member in members
    ]
    found = assess([*raid_messages(), *links, *jokes])
    assert found.is_raid
    assert participants(found).isdisjoint(members)


def test_old_accounts_that_were_taken_over_and_advertise_are_a_raid() -> None:
    assert assess(raid_messages(age_ms=OLD)).is_raid


def test_an_old_account_that_repeats_the_text_of_a_raid_takes_part_and_counts_as_established() -> None:
    victim = account(77, age_ms=OLD)
    found = assess([*raid_messages(), say(victim, f"{SPAM} 9", seconds_ago=60)])
    (one,) = (one for one in found.participants if one.author_id == victim)
    assert one.is_established
    assert not any(one.is_established for one in found.participants if one.author_id != victim)


def test_an_old_account_with_more_messages_of_its_own_than_of_the_raid_is_spared() -> None:
    member = account(100, age_ms=OLD)
    found = assess([*raid_messages(), *talk_messages(), say(member, f"{SPAM} 9", seconds_ago=1)])
    assert found.is_raid
    (one,) = (one for one in found.accounts if one.author_id == member)
    assert Sign.SAME_TEXT in one.signs
    assert not one.takes_part


def test_somebody_who_quotes_a_part_of_the_text_is_spared() -> None:
    member = account(78, age_ms=OLD)
    found = assess([*raid_messages(), say(member, "please stop posting free coins, mods are on it", seconds_ago=50)])
    assert member not in participants(found)


def test_one_account_that_floods_is_no_raid() -> None:
    spammer = account(1, age_ms=NEW)
    found = assess([say(spammer, SPAM, seconds_ago=60 - n) for n in range(60)])
    assert not found.is_raid


def test_few_messages_of_new_accounts_are_no_raid() -> None:
    assert not assess(raid_messages(accounts=6, each=1)).is_raid


def test_a_slow_stream_of_the_same_text_is_no_raid() -> None:
    messages = [say(account(n, age_ms=NEW), SPAM, seconds_ago=20 * n) for n in range(60)]
    found = assess(messages)
    assert not found.is_raid
    assert len(found.participants) == 60


def test_mass_mentions_and_floods_of_new_accounts_with_varied_texts_are_a_raid() -> None:
    flood = [replace(message, mentions=(1, 2, 3, 4, 5)) for message in talk_messages(accounts=6, each=8, age_ms=NEW)]
    found = assess(flood)
    assert found.is_raid
    assert {Sign.MENTIONS, Sign.FLOOD} <= set(found.participants[0].signs)


def test_bots_and_webhooks_never_take_part() -> None:
    bot = account(5, age_ms=NEW)
    messages = raid_messages()
    found = assess(messages, bots=frozenset({bot}))
    assert bot not in participants(found)
    assert not assess([replace(message, webhook_id=9) for message in messages]).participants


def test_a_raid_begins_after_the_last_long_pause() -> None:
    early = [say(account(n, age_ms=NEW), SPAM, seconds_ago=1_500 - n) for n in range(3)]
    raid = raid_messages()
    found = assess([*early, *raid])
    assert found.first_id == min(message.message_id for message in raid)
    assert found.count == len(raid)


def test_authors_who_are_not_in_the_index_have_no_sign_of_being_new() -> None:
    found = assess_messages(raid_messages(), first_seen={}, bots=frozenset(), limits=Limits(), now_ms=NOW_MS)
    assert Sign.FIRST_SEEN not in found.participants[0].signs


def test_authors_who_may_be_new_have_the_sign_of_being_new() -> None:
    raid = raid_messages()
    for latest, is_new in ((NOW_MS, True), (NOW_MS - 2 * DAY_MS, False)):
        seen = {message.author_id: FirstSeen(NOW_MS - 9 * DAY_MS, latest) for message in raid}
        found = assess_messages(raid, first_seen=seen, bots=frozenset(), limits=Limits(), now_ms=NOW_MS)
        assert (Sign.FIRST_SEEN in found.accounts[0].signs) is is_new


def test_a_guild_sets_what_floods_mentions_and_links_are() -> None:
    author = account(1, age_ms=NEW)
    own = [say(author, f"<@{n}> see https://a.example/{n}", seconds_ago=30 - 5 * n) for n in range(4)]
    own = [replace(message, mentions=(number,)) for number, message in enumerate(own)]
    age = {Sign.YOUNG, Sign.FIRST_SEEN}
    assert {*assess(own).accounts[0].signs} == {*age, Sign.LINKS}
    strict = Limits(account_messages=4, mentions=4, links=5)
    assert {*assess(own, limits=strict).accounts[0].signs} == {*age, Sign.FLOOD, Sign.MENTIONS}


def test_limits_of_a_guild_apply() -> None:
    raid = raid_messages(accounts=12)
    assert not assess(raid, limits=Limits(accounts=13)).is_raid
    assert not assess(raid, limits=Limits(messages_per_minute=1_000)).is_raid
    signs = assess(raid, limits=Limits(same_text_accounts=13)).accounts[0].signs
    assert Sign.SAME_TEXT not in signs
    days = assess(raid_messages(age_ms=20 * DAY_MS), first_seen_ms=40 * DAY_MS, limits=Limits(account_days=30))
    assert Sign.YOUNG in days.accounts[0].signs


@pytest.mark.parametrize(
    ("rate", "usual", "expected"), [(19, 0, False), (20, 0, True), (90, 20, False), (100, 20, True)]
)
def test_a_rate_is_unusual_by_itself_and_for_the_channel(rate: int, usual: float, expected: bool) -> None:
    assert Limits().is_unusual(rate, usual=usual) is expected


def test_nothing_is_assessed_of_no_messages() -> None:
    found = assess([])
    assert (found.is_raid, found.count, found.seconds, list(found.accounts)) == (False, 0, 0, [])


def test_the_length_of_a_raid_is_that_of_its_messages() -> None:
    raid = raid_messages(accounts=8, each=5)
    assert assess(raid).seconds == 80 + 7
