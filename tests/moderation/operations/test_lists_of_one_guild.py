"""Lists are cut after rights are applied: what other guilds have more of hides nothing of one's own."""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.roles import Grant, Role
from chatstore.domain.runs import Severity
from chatstore.models import Channel, ChannelSummary, ChatUser, Finding, Guild
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health import channel_list
from chatstore.operations.health.channel_list import ChannelQuery, guilds_named, list_channels
from chatstore.store import activity
from chatstore.store.redis import redis_client
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.operations.access.visibility import visible_channels
from moderation.operations.lookup import recent_posts
from moderation.operations.lookup.audit_log import VIEW_AUDIT
from moderation.operations.lookup.author_places import first_places
from moderation.operations.lookup.channels import channels_by_activity, newest_among
from moderation.operations.lookup.recent_posts import recent_posts_of
from moderation.operations.lookup.search import MAX_RECENT, search_anything
from moderation.operations.lookup.sidebar import sidebar_of
from moderation.operations.preview import first_matches
from moderation.operations.preview.first_matches import find_first_matches
from moderation.operations.purging.listing import MAX_PLACES, list_deleted
from moderation.operations.raids import detection
from moderation.operations.raids.detection import MAX_NOTICES, RAID, list_raids, raided_channels
from moderation.operations.selection.parsing import MAX_CANDIDATES
from moderation.operations.selection.places import parse_grants
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, now_ms, old_ids, purge_now, recent_ids, write
from tests.plans import explain


def channel_in(guild: str, name: str = "room") -> Channel:
    channel = make_channel()
    channel.guild = Guild.objects.create(pk=channel.pk - 1, name=guild)
    channel.name = name
    channel.save()
    return channel


@pytest.fixture
def here() -> Channel:
    """A channel of Gina's guild."""
    return channel_in("Gophers")


@pytest.fixture
def gina(here: Channel) -> User:
    """Gina, a moderator of one guild."""
    gina = make_user("gina", group=None)
    give(gina, Role.MODERATOR, guild_id=here.guild_id)
    return gina


@pytest.fixture
def author() -> int:
    """A chat user who posted in Gina's guild long ago, and in many others since."""
    author = secrets.randbits(40) + 2**43
    ChatUser.objects.create(pk=author, name=f"v{author}")
    return author


@pytest.fixture
def _no_raids() -> Iterator[None]:
    yield
    Finding.objects.filter(kind=RAID).delete()


def report_raid(channel: Channel, *, seconds_ago: int) -> Finding:
    """Open a finding; a negative number of seconds is in the future, so that it is the newest of all."""
    return Finding.objects.create(
        kind=RAID,
        subject=str(channel.pk),
        severity=Severity.CRITICAL,
        summary="Possible raid",
        opened_at=postgres_now() - dt.timedelta(seconds=seconds_ago),
    )


@pytest.mark.usefixtures("_no_raids")
def test_raids_elsewhere_hide_no_notice_of_a_raid(here: Channel, gina: User) -> None:
    own = report_raid(here, seconds_ago=60)
    for _ in range(MAX_NOTICES):
        report_raid(channel_in("Crabs"), seconds_ago=-60)
    assert list_raids(gina) == [own]
    assert list_raids(make_user("otto", group="operators")) == []


@pytest.mark.usefixtures("_no_raids")
def test_the_page_of_a_raid_shows_as_many_notices_of_others(here: Channel, gina: User) -> None:
    report_raid(here, seconds_ago=-60)
    others = []
    for number in range(MAX_NOTICES):
        channel = make_channel()
        Channel.objects.filter(pk=channel.pk).update(guild=here.guild)
        others.append(report_raid(channel, seconds_ago=number))
    assert list_raids(gina, except_in=here.pk) == others


@pytest.mark.usefixtures("_no_raids")
def test_raids_elsewhere_hide_no_mark_of_a_raid(here: Channel, gina: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "MAX_MARKED", 2)
    report_raid(here, seconds_ago=60)
    for _ in range(2):
        report_raid(channel_in("Crabs"), seconds_ago=-60)
    assert raided_channels(gina) == {here.pk}


@pytest.mark.usefixtures("_no_raids")
def test_the_notices_are_found_by_index_beside_findings_whose_subjects_are_no_numbers(
    here: Channel, gina: User
) -> None:
    report_raid(here, seconds_ago=60)
    Finding.objects.create(kind="heavy bucket", subject=f"{here.pk}:1", severity=Severity.WARNING, summary="Heavy")
    statements = explain(lambda: list_raids(gina), use_indexes=True)
    assert [s.sql for s in statements if s.scanned & {Finding._meta.db_table, Channel._meta.db_table}] == []


def test_channels_elsewhere_hide_no_channel_that_a_found_user_posted_in(here: Channel, gina: User, author: int) -> None:
    write(here, old_ids(1, buckets_ago=9), author=author)
    for _ in range(MAX_RECENT):
        write(channel_in("Crabs"), old_ids(1), author=author)
    (found,) = search_anything(gina, str(author)).users
    assert [recent.channel for recent in found.recent_channels] == [here]


def test_the_channels_of_all_found_users_are_looked_up_by_one_statement(here: Channel, gina: User) -> None:
    name, other = f"zoe {secrets.token_hex(6)}", channel_in("Crabs")
    people = [ChatUser.objects.create(pk=secrets.randbits(40) + 2**43, name=f"{name} {n}") for n in range(3)]
    own = [channel_in("Gophers"), here, here]
    give(gina, Role.MODERATOR, guild_id=own[0].guild_id)
    for person, channel in zip(people, own, strict=True):
        write(channel, old_ids(1), author=person.pk)
        write(other, old_ids(1), author=person.pk)
    with CaptureQueriesContext(connection) as captured:
        found = search_anything(gina, name).users
    recent = {one.user.pk: [place.channel for place in one.recent_channels] for one in found}
    assert recent == {person.pk: [channel] for person, channel in zip(people, own, strict=True)}
    assert len([query for query in captured if str(other.pk) in query["sql"]]) == 1


def test_posts_elsewhere_hide_no_newest_message_of_a_user(
    here: Channel, gina: User, author: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_posts, "MAX_PLACES", 2)
    write(here, recent_ids(2), author=author)
    for _ in range(5):
        write(channel_in("Crabs"), recent_ids(1), author=author)
    found = recent_posts_of(gina, author)
    assert [channel for channel, _ in found.newest] == [here, here]
    assert (found.in_hour, found.is_complete) == (2, True)


def test_posts_elsewhere_hide_no_first_match(
    here: Channel, gina: User, author: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_matches, "MAX_PLACES", 2)
    monkeypatch.setattr(first_matches, "SECONDS", 60.0)
    write(here, old_ids(3, buckets_ago=9), author=author)
    for _ in range(3):
        write(channel_in("Crabs"), old_ids(1), author=author)
    found = find_first_matches(gina, Selection(where=Author((author,))))
    assert (found.count, found.is_complete) == (3, True)


def test_the_index_of_an_author_is_read_in_parts_until_there_is_enough(here: Channel, gina: User) -> None:
    other = channel_in("Crabs")
    index = iter([*((bucket, other.pk) for bucket in range(1_200)), *((bucket, here.pk) for bucket in range(3))])
    found = first_places(index, visible_channels(gina), limit=2)
    assert (found.entries, found.is_whole) == ([(0, here.pk), (1, here.pk)], False)
    assert found.channels == {here.pk: here}
    never = first_places(((bucket, other.pk) for bucket in range(20_000)), visible_channels(gina), limit=2)
    assert (never.entries, never.is_whole) == ([], False)
    whole = first_places(iter([(1, here.pk), (1, other.pk)]), visible_channels(gina), limit=2)
    assert (whole.entries, whole.is_whole) == ([(1, here.pk)], True)


@pytest.fixture
def _busy_elsewhere() -> Iterator[None]:
    """More channels than a page ranks, with newer messages than any other; no page may open them."""
    busy = {str(make_channel().pk + number): now_ms() / 1000 + 3600 for number in range(1, 300)}
    redis_client().zadd(activity.KEY, busy)
    yield
    redis_client().zrem(activity.KEY, *busy)


@pytest.mark.usefixtures("_busy_elsewhere")
def test_activity_elsewhere_hides_no_channel_with_new_messages(here: Channel, gina: User) -> None:
    names = ["  first", "~last"]
    quiet, active = (channel_in("Gophers", name) for name in names)
    for channel in (quiet, active):
        give(gina, Role.MODERATOR, guild_id=channel.guild_id)
    write(active, recent_ids(1))
    redis_client().zadd(activity.KEY, {str(active.pk): now_ms() / 1000})
    assert channels_by_activity(gina).recent[0].channel == active
    assert sidebar_of(gina, None).guild == active.guild


def test_places_that_cannot_be_opened_leave_room_for_others(mona: User) -> None:
    counts = [4, 3, 2]
    channels = [channel_in("Gophers") for _ in counts]
    author = secrets.randbits(40) + 2**43
    for channel, count in zip(channels, counts, strict=True):
        write(channel, old_ids(count), author=author)
    ids = tuple(channel.pk for channel in channels)
    purge = purge_now(mona, Selection(channel_ids=ids, where=Author((author,))))
    Channel.objects.filter(pk=channels[0].pk).delete()
    (shown,) = [one for one in list_deleted(mona, moderator=mona.get_username()).purges if one.listed.purge == purge]
    assert (list(shown.places), shown.other_places) == (channels[1:], len(counts) - MAX_PLACES)


@pytest.mark.usefixtures("_busy_elsewhere")
def test_busier_channels_elsewhere_leave_ones_own_in_the_order_of_their_last_messages(
    gina: User, here: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moderation.operations.lookup.channels.MAX_ACTIVE", 20)
    own = [here, *(Channel.objects.create(pk=here.pk + number, guild=here.guild, name="a") for number in (1, 2, 3))]
    posted_at = {channel.pk: time.time() - 86_400 * ago for channel, ago in zip(own, (2, 4, 1), strict=False)}
    redis_client().zadd(activity.KEY, {str(channel_id): at for channel_id, at in posted_at.items()})
    newest = newest_among(visible_channels(gina), limit=2)
    assert [channel.pk for channel in newest] == [own[2].pk, own[0].pk]
    assert len(newest_among(visible_channels(gina), limit=9)) == 3


def test_guilds_of_the_same_name_hide_no_guild_of_an_administrator() -> None:
    name = f"Harbour {secrets.token_hex(6)}"
    for guild_id in [channel_in(name).guild_id for _ in range(MAX_CANDIDATES + 1)]:
        admin = make_user("ada", group=None)
        give(admin, Role.ADMIN, guild_id=guild_id)
        grants = parse_grants("moderator", guild=name.upper(), channels="", user=admin)
        assert grants == [Grant(Role.MODERATOR, guild_id=guild_id)]


def test_guilds_of_the_same_name_hide_no_guild_of_the_audit_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_list, "MAX_GUILDS", 1)
    name = f"Harbour {secrets.token_hex(6)}"
    for guild_id in [channel_in(name).guild_id for _ in range(3)]:
        auditor = make_user("aude", group=None)
        give(auditor, Role.AUDITOR, guild_id=guild_id)
        assert guilds_named(auditor, name, VIEW_AUDIT) == [guild_id]


def test_channels_of_the_same_name_hide_none_of_the_chosen_guild(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_list, "MAX_NAMED", 1)
    name = f"pier-{secrets.token_hex(6)}"
    channels = [channel_in("Harbour", name) for _ in range(3)]
    assert ChannelSummary.objects.filter(channel__in=channels).count() == len(channels)
    for channel in channels:
        query = ChannelQuery(name=name, guilds=[channel.guild_id or 0])
        assert [one.channel for one in list_channels(ada, query).channels] == [channel]
