"""A purge of what was posted within minutes of joining deletes exactly that, by the joins of the message's guild."""

from __future__ import annotations

import secrets

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_ids, bucket_of
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, ms_of, time_of
from chatstore.gateway import Member, save_member, save_members
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from moderation.domain.filters import All, Author, Filter, JoinedWithin, Not
from moderation.domain.selection import Selection
from moderation.operations.preview.first_matches import find_first_matches
from tests.moderation.channels import buckets_of, ids_of, make_channel, old_ids, preview, purge_now, write

JOINED = old_ids(3)[1]
"""Its time is when the raiders of these tests joined."""

RAIDER, MEMBER, STRANGER, LATECOMER = 8_101, 8_102, 8_103, 8_104


@pytest.fixture
def guild() -> Guild:
    return Guild.objects.create(pk=secrets.randbits(60), name="Harbour")


@pytest.fixture
def channel(guild: Guild) -> Channel:
    return channel_in(guild)


def channel_in(guild: Guild | None) -> Channel:
    channel = make_channel()
    channel.guild = guild
    channel.save()
    return channel


def after(minutes: float, *, sequence: int = 0) -> int:
    """Return an id so many minutes after the joining."""
    return make_snowflake(ms_of(JOINED) + round(minutes * MINUTE_MS), sequence=sequence)


def left_in(channel: Channel, *ids: int) -> list[int]:
    return ids_of(channel, *buckets_of(list(ids)))


def select(channel: Channel, where: Filter | None = None) -> Selection:
    return Selection(channel_ids=(channel.pk,), where=where or JoinedWithin(10))


def test_messages_of_the_first_minutes_are_deleted_and_all_others_kept(
    channel: Channel, guild: Guild, mona: User
) -> None:
    save_members(
        guild.pk,
        [
            Member(RAIDER, joined_at=time_of(JOINED)),
            Member(MEMBER, joined_at=time_of(after(-90))),
            Member(LATECOMER, joined_at=time_of(after(6))),
            Member(STRANGER),
        ],
    )
    raid = [after(0), after(4), after(10)]
    spared = [after(-1), after(10.01), after(60)]
    write(channel, [*raid, *spared], author=RAIDER)
    others = {author: after(5, sequence=author % 100) for author in (MEMBER, STRANGER, LATECOMER, 8_199)}
    for author, message_id in others.items():
        write(channel, [message_id], author=author)
    purge = purge_now(mona, select(channel))
    assert purge.manifest == 3
    assert left_in(channel, *raid) == sorted([*spared, *others.values()])


def test_a_member_who_came_back_is_matched_by_the_newest_join(channel: Channel, guild: Guild, mona: User) -> None:
    for joined in (after(0), after(30)):
        save_member(guild.pk, RAIDER, joined_at=time_of(joined))
    write(channel, [after(1), after(31)], author=RAIDER)
    purge_now(mona, select(channel))
    assert left_in(channel, JOINED) == [after(1)]


def test_only_the_guild_of_the_message_counts(guild: Guild, mona: User) -> None:
    """The same author, in several guilds of one purge, and in direct messages."""
    author = secrets.randbits(60)
    other = Guild.objects.create(pk=secrets.randbits(60), name="Quay")
    here, there, direct = channel_in(guild), channel_in(other), channel_in(None)
    save_member(guild.pk, author, joined_at=time_of(JOINED))
    save_member(other.pk, author, joined_at=time_of(after(-500)))
    for channel in (here, there, direct):
        write(channel, [after(1)], author=author)
    purge = purge_now(mona, Selection(where=All((Author((author,)), JoinedWithin(10)))))
    assert purge.manifest == 1
    assert [left_in(channel, JOINED) for channel in (here, there, direct)] == [[], [after(1)], [after(1)]]


def test_an_exception_spares_only_those_who_are_known_to_have_just_joined(
    channel: Channel, guild: Guild, mona: User
) -> None:
    save_member(guild.pk, RAIDER, joined_at=time_of(JOINED))
    write(channel, [after(1), after(11)], author=RAIDER)
    write(channel, [after(2)], author=STRANGER)
    purge = preview(mona, select(channel, All((Author((RAIDER, STRANGER)), Not(JoinedWithin(10))))))
    assert purge.manifest == 2


def test_a_join_just_before_a_bucket_matches_what_was_posted_in_it(channel: Channel, guild: Guild, mona: User) -> None:
    start = bucket_ids(bucket_of(JOINED))[0]
    joined_ms = ms_of(start) - 5 * MINUTE_MS
    save_member(guild.pk, RAIDER, joined_at=time_of(make_snowflake(joined_ms)))
    write(channel, [start, make_snowflake(joined_ms + 11 * MINUTE_MS)], author=RAIDER)
    assert preview(mona, select(channel)).manifest == 1


def test_the_first_matches_are_the_same(channel: Channel, guild: Guild, mona: User) -> None:
    save_member(guild.pk, RAIDER, joined_at=time_of(JOINED))
    write(channel, [after(1), after(2), after(20)], author=RAIDER)
    write(channel, [after(3)], author=STRANGER)
    found = find_first_matches(mona, select(channel))
    assert (found.count, found.is_complete) == (2, True)
    assert [message.message_id for _, message in found.newest] == [after(2), after(1)]


def test_joins_are_read_once_for_many_channels_and_not_without_the_condition(guild: Guild, mona: User) -> None:
    channels = [channel_in(guild) for _ in range(12)]
    author = secrets.randbits(60)
    save_member(guild.pk, author, joined_at=time_of(JOINED))
    for channel in channels:
        write(channel, [after(1), after(20)], author=author)
    for where, statements in ((JoinedWithin(10), 1), (Author((author,)), 0)):
        with CaptureQueriesContext(connection) as captured:
            purge = preview(mona, Selection(guild_id=guild.pk, where=where))
        assert purge.manifest == (12 if statements else 24)
        assert len([query for query in captured if "chatstore_guildmember" in query["sql"]]) == statements
