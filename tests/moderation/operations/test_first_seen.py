"""A purge of what was posted within hours of the author's first message deletes exactly that, wherever that was."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Sequence

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.milliseconds import HOUR_MS
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.gateway import withdraw_message
from chatstore.models import Channel, Guild
from chatstore.models.users import User
from chatstore.store import authors, cassandra, first_posts
from chatstore.store.authors import ensure_author_bucket, oldest_places
from moderation.domain.filters import All, AnyOf, Author, Before, Filter, FirstSeenWithin, Not, Since, Words
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.models import ManifestBucket, Purge
from moderation.operations.preview import first_matches
from moderation.operations.preview.first_matches import find_first_matches
from moderation.operations.steps import first_seen
from moderation.operations.steps.first_seen import FirstSeenReader
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import ids_of, make_channel, now_ms, preview, purge_now, run_to_end, write

DAY_HOURS = 24

START_MS = ms_of(bucket_ids(bucket_at(now_ms()) - 6)[0])
"""Start of a bucket that is sealed long ago; the times of these tests are hours after it."""


@pytest.fixture
def channel() -> Channel:
    return make_channel()


@pytest.fixture
def author() -> int:
    return secrets.randbits(60)


def at(hours: float) -> int:
    """Return an id so many hours after the start of the bucket."""
    return make_snowflake(START_MS + round(hours * HOUR_MS), sequence=1)


def select(*channels: Channel, where: Filter | None = None) -> Selection:
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=where or FirstSeenWithin(24))


def matched(purge: Purge) -> list[int]:
    """Return the ids that a preview found."""
    return sorted(message_id for step in purge.steps.all() for message_id in unpack_ids(step.ids))


def find(mona: User, *channels: Channel, where: Filter | None = None) -> list[int]:
    return matched(preview(mona, select(*channels, where=where)))


def test_messages_within_hours_of_the_first_one_are_deleted_and_all_others_kept(
    channel: Channel, author: int, mona: User
) -> None:
    old = secrets.randbits(60)
    raid, later = [at(50), at(51), at(50 + DAY_HOURS)], [at(50.01 + DAY_HOURS), at(300)]
    write(channel, [*raid, *later], author=author)
    write(channel, [at(-400), at(51.5)], author=old)
    purge = purge_now(mona, select(channel))
    assert purge.manifest == len(raid) + 1
    assert ids_of(channel, *range(bucket_of(at(-400)), bucket_of(at(300)) + 1)) == [at(51.5), *later]


def test_a_first_message_in_any_other_channel_counts_also_where_the_moderator_may_not_look(
    channel: Channel, author: int, mona: User
) -> None:
    elsewhere = make_channel(guild="Elsewhere")
    write(elsewhere, [at(20)], author=author)
    write(channel, [at(40), at(50)], author=author)
    assert find(mona, channel) == [at(40)]


def test_a_first_message_in_the_bucket_before_counts(channel: Channel, author: int, mona: User) -> None:
    elsewhere = make_channel()
    write(elsewhere, [at(-1)], author=author)
    write(channel, [at(0), at(22.9), at(23.1)], author=author)
    assert find(mona, channel) == [at(0), at(22.9)]


def test_only_the_hours_of_the_first_message_count_not_those_of_a_bucket(
    channel: Channel, author: int, mona: User
) -> None:
    write(channel, [at(230), at(239), at(241), at(250), at(255)], author=author)
    assert find(mona, channel, where=FirstSeenWithin(12)) == [at(230), at(239), at(241)]
    assert find(mona, channel, where=FirstSeenWithin(8_760)) == [at(230), at(239), at(241), at(250), at(255)]


def test_an_older_message_that_is_imported_later_makes_its_author_older(
    channel: Channel, author: int, mona: User
) -> None:
    write(channel, [at(50), at(60)], author=author)
    assert find(mona, channel) == [at(50), at(60)]
    write(make_channel(), [at(30)], author=author)
    assert find(mona, channel) == [at(50)]
    write(make_channel(), [at(-500)], author=author)
    assert find(mona, channel) == []


def test_a_first_message_that_its_author_deleted_counts(channel: Channel, author: int, mona: User) -> None:
    write(channel, [at(10), at(30), at(40)], author=author)
    withdraw_message(channel.pk, at(10), actor=author)
    assert find(mona, channel) == [at(30)]


def test_a_legacy_withdrawal_that_names_nobody_may_be_of_anyone(channel: Channel, author: int, mona: User) -> None:
    write(channel, [at(20), at(50), at(70)], author=author)
    key = channel.pk, bucket_of(at(40)), at(40)
    cassandra.execute("INSERT INTO withdrawn (channel_id, bucket, message_id) VALUES (?, ?, ?)", key)
    other = secrets.randbits(60)
    write(channel, [at(60), at(70.5)], author=other)
    assert find(mona, channel) == [at(20), at(60)]
    assert find(mona, channel, where=All((Author((other,)), Not(FirstSeenWithin(20))))) == []


def test_first_messages_that_a_purge_deleted_may_be_as_old_as_the_oldest_that_it_deleted(
    channel: Channel, author: int, mona: User
) -> None:
    other, bystander = secrets.randbits(60), secrets.randbits(60)
    write(channel, [at(100)], author=other)
    write(channel, [at(110), at(112), at(120), at(130)], author=author)
    write(channel, [at(125)], author=bystander)
    purge_now(mona, select(channel, where=All((Author((author, other)), Before(at(115))))))
    assert find(mona, channel) == [at(120), at(125)]
    # Neither the condition nor its negation matches what is in doubt, here 20 to 30 hours after the first message.
    assert find(mona, channel, where=All((Author((author,)), Not(FirstSeenWithin(24))))) == []
    assert find(mona, channel, where=All((Author((author,)), Not(FirstSeenWithin(5))))) == [at(130)]


def test_without_its_manifest_a_purge_may_have_deleted_messages_of_anyone(
    channel: Channel, author: int, mona: User
) -> None:
    bystander = secrets.randbits(60)
    write(channel, [at(100), at(101)], author=author)
    write(channel, [at(126)], author=bystander)
    purge = purge_now(mona, select(channel, where=Author((author,))))
    assert find(mona, channel) == [at(126)]
    ManifestBucket.objects.filter(purge=purge).delete()
    assert find(mona, channel) == []
    assert find(mona, channel, where=FirstSeenWithin(26)) == [at(126)]


def test_messages_that_an_undo_restored_are_the_first_again(channel: Channel, author: int, mona: User) -> None:
    other = secrets.randbits(60)
    write(channel, [at(100)], author=other)
    write(channel, [at(110), at(130)], author=author)
    purge = purge_now(mona, select(channel, where=Before(at(120))))
    assert find(mona, channel) == []
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    assert find(mona, channel) == [at(100), at(110), at(130)]


def test_an_author_of_whose_first_period_nothing_is_left_may_have_been_there_from_its_start(
    channel: Channel, author: int, mona: User
) -> None:
    ensure_author_bucket(author, channel.pk, bucket_of(at(-1)))
    write(channel, [at(1)], author=author)
    assert find(mona, channel, where=FirstSeenWithin(240)) == []
    assert find(mona, channel, where=FirstSeenWithin(241)) == [at(1)]
    # It may also have been just before its end.
    assert find(mona, channel, where=Not(FirstSeenWithin(2))) == []
    assert find(mona, channel, where=Not(FirstSeenWithin(1))) == [at(1)]


def test_an_exception_spares_what_is_within_the_hours(channel: Channel, author: int, mona: User) -> None:
    write(channel, [at(50), at(60), at(80)], author=author)
    assert find(mona, channel, where=Not(FirstSeenWithin(24))) == [at(80)]
    both = AnyOf((Not(FirstSeenWithin(24)), All((FirstSeenWithin(5), Since(at(0))))))
    assert find(mona, channel, where=both) == [at(50), at(80)]


def test_only_the_authors_of_what_meets_the_other_conditions_are_looked_up(
    channel: Channel, author: int, mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def note(author_ids: Sequence[int]) -> dict[int, tuple[int, list[int]]]:
        asked.extend(author_ids)
        return oldest_places(author_ids)

    monkeypatch.setattr(first_seen, "oldest_places", note)
    write(channel, [at(50)], author=author, content="free nitro")
    for _ in range(5):
        write(channel, [at(60)], author=secrets.randbits(60))
    for condition in (Words("nitro"), Author((author,))):
        assert find(mona, channel, where=All((condition, FirstSeenWithin(24)))) == [at(50)]
    assert asked == [author, author]
    asked.clear()
    find(mona, channel, where=Words("nitro"))
    assert asked == []


def test_the_first_messages_of_many_channels_are_read_together(author: int, mona: User) -> None:
    guild = Guild.objects.create(pk=secrets.randbits(60), name="Harbour")
    for number in range(12):
        write(make_channel(guild=guild), [at(50 + number)], author=author)
    with CaptureQueriesContext(connection) as captured:
        purge = preview(mona, Selection(guild_id=guild.pk, where=FirstSeenWithin(5)))
    assert purge.manifest == 6
    assert sum("wanted.before" in query["sql"] for query in captured) == 1


def test_messages_of_many_authors_are_found_as_by_looking_at_all_of_them(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_posts, "PAGE_ROWS", 7)
    chance = random.Random(7)
    channels = [make_channel() for _ in range(4)]
    posts: dict[int, list[tuple[int, Channel]]] = {secrets.randbits(60): [] for _ in range(30)}
    for number, own in enumerate(posts.values()):
        times = {chance.randrange(0, 720) for _ in range(chance.randrange(1, 12))}
        own += [(at(hours + number / 100), chance.choice(channels)) for hours in sorted(times)]
    for author, own in posts.items():
        for message_id, where in own:
            write(where, [message_id], author=author)

    def expected(hours: int, chosen: Sequence[Channel]) -> list[int]:
        return sorted(
            message_id
            for own in posts.values()
            for message_id, where in own
            if where in chosen and ms_of(message_id) - ms_of(own[0][0]) <= hours * HOUR_MS
        )

    for hours in (1, 24, 200, 500):
        for chosen in (channels, channels[:1]):
            assert find(mona, *chosen, where=FirstSeenWithin(hours)) == expected(hours, chosen)
    monkeypatch.setattr(authors, "OLDEST_ROWS", 1)
    monkeypatch.setattr(first_posts, "MAX_REMEMBERED_POSTS", 3)
    monkeypatch.setattr(first_posts, "BUCKETS_AT_ONCE", 1)
    monkeypatch.setattr(first_seen, "MAX_REMEMBERED_AUTHORS", 3)
    assert find(mona, *channels) == expected(24, channels)


def test_the_first_matches_are_the_same(channel: Channel, author: int, mona: User) -> None:
    write(channel, [at(50), at(51), at(80)], author=author)
    found = find_first_matches(mona, select(channel))
    assert (found.count, found.is_complete) == (2, True)
    assert [message.message_id for _, message in found.newest] == [at(51), at(50)]


def test_first_matches_without_time_to_find_the_first_messages_are_incomplete(
    channel: Channel, author: int, mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_matches, "MORE_SECONDS", -60)
    write(channel, [at(50), at(51), at(80)], author=author)
    for where in (FirstSeenWithin(24), Not(FirstSeenWithin(24))):
        found = find_first_matches(mona, select(channel, where=where))
        assert (found.count, found.is_complete) == (0, False)
    assert find_first_matches(mona, select(channel, where=Author((author,)))).is_complete


def test_an_author_who_was_not_reached_in_time_is_known_by_the_period(channel: Channel, author: int) -> None:
    write(channel, [at(50)], author=author)
    reader = FirstSeenReader(until=time.monotonic() + 60)
    reader.read_periods([author])
    reader._until = 0
    reader.read_exactly({author: at(50)})
    seen = reader.get(author)
    assert seen is not None
    assert (seen.earliest, seen.latest, reader.is_complete) == (START_MS, START_MS + 240 * HOUR_MS - 1, False)


@override_settings(CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN=False)
def test_nothing_matches_if_other_programs_may_have_written_older_messages(
    channel: Channel, author: int, mona: User
) -> None:
    write(channel, [at(50), at(51), at(100)], author=author)
    assert find(mona, channel) == []
    assert find(mona, channel, where=Not(FirstSeenWithin(24))) == [at(100)]


def test_a_scan_that_lost_its_claim_ends_while_it_reads_first_messages(channel: Channel, author: int) -> None:
    class LostError(Exception):
        pass

    def lose() -> None:
        raise LostError

    write(channel, [at(50)], author=author)
    reader = FirstSeenReader()
    reader.read_periods([author])
    with pytest.raises(LostError):
        reader.read_exactly({author: at(50)}, between=lose)
