"""The plan of the demo data: reproducible for a seed and an end, and its contents."""

import datetime as dt
import itertools
from collections import Counter

import pytest

from chatstore.demo.messages import make_channel_messages
from chatstore.demo.plan import DemoChannel, plan_demo
from chatstore.demo.reports import make_reports
from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message

pytestmark = pytest.mark.unit

UNTIL = dt.datetime(2026, 3, 14, 15, 9, 26, tzinfo=dt.UTC)
PLAN = plan_demo(5, UNTIL)
RUNS_IN_BUDGET = 250
"""Half of a bucket's tombstone budget: each range of deleted messages costs two."""


MessagesByChannel = dict[DemoChannel, list[Message]]


@pytest.fixture(scope="module")
def messages_by_channel() -> MessagesByChannel:
    """All messages except the incident's, by channel."""
    return {channel: make_channel_messages(PLAN, channel) for channel in PLAN.channels}


@pytest.fixture(scope="module")
def incident() -> list[Message]:
    """The messages of the incident."""
    return make_channel_messages(PLAN, PLAN.incident)


def test_the_plan_has_the_documented_size(messages_by_channel: MessagesByChannel, incident: list[Message]) -> None:
    assert len(PLAN.guild_ids) == 3
    assert len(PLAN.channels) == 24
    assert sum(map(len, messages_by_channel.values())) == 150_000
    assert len(incident) == 200_000


def test_the_same_seed_and_end_give_the_same_messages(messages_by_channel: MessagesByChannel) -> None:
    again = plan_demo(5, UNTIL)
    assert again == PLAN
    for channel in PLAN.channels[:4]:
        assert make_channel_messages(again, channel) == messages_by_channel[channel]


def test_another_seed_or_end_gives_other_messages() -> None:
    other = plan_demo(6, UNTIL)
    assert other.guild_ids != PLAN.guild_ids
    assert {c.channel_id for c in other.channels}.isdisjoint(c.channel_id for c in PLAN.channels)
    later = plan_demo(5, UNTIL + dt.timedelta(days=1))
    assert later.guild_ids == PLAN.guild_ids
    assert {c.channel_id for c in later.channels}.isdisjoint(c.channel_id for c in PLAN.channels)


def test_ids_ascend_and_none_is_later_than_the_end(
    messages_by_channel: MessagesByChannel, incident: list[Message]
) -> None:
    for messages in (*messages_by_channel.values(), incident):
        ids = [message.message_id for message in messages]
        assert all(earlier < later for earlier, later in itertools.pairwise(ids))
        assert messages[-1].posted_at <= UNTIL
        assert messages[0].posted_at >= UNTIL - dt.timedelta(days=730)
    assert len({m.message_id for messages in messages_by_channel.values() for m in messages}) == 150_000


def test_the_plan_spans_two_years_and_has_idle_channels(messages_by_channel: MessagesByChannel) -> None:
    days = {channel.name: (UNTIL - messages[-1].posted_at).days for channel, messages in messages_by_channel.items()}
    assert sum(quiet >= 180 for quiet in days.values()) >= 4
    assert sum(quiet <= 3 for quiet in days.values()) >= 15
    oldest = min(messages[0].posted_at for messages in messages_by_channel.values())
    assert oldest < UNTIL - dt.timedelta(days=725)


def test_one_author_spams_many_channels(messages_by_channel: MessagesByChannel) -> None:
    spam = Counter(
        channel.name
        for channel, messages in messages_by_channel.items()
        for message in messages
        if message.author_id == PLAN.spammer.user_id
    )
    assert sum(spam.values()) == 900
    assert len(spam) >= 15


def test_the_last_half_hour_contains_a_raid(messages_by_channel: MessagesByChannel) -> None:
    raiders = {user.user_id for user in PLAN.raiders}
    raid = [m for messages in messages_by_channel.values() for m in messages if m.author_id in raiders]
    assert len(raid) > 1_000
    assert {m.channel_id for m in raid} == {raid[0].channel_id}
    assert all(UNTIL - m.posted_at <= dt.timedelta(minutes=30) for m in raid)
    assert len({m.author_id for m in raid}) == len(raiders)


def test_the_incident_is_mostly_one_authors_flood_in_several_buckets(incident: list[Message]) -> None:
    flood = [m.author_id == PLAN.flooder.user_id for m in incident]
    assert 0.9 < sum(flood) / len(flood) < 1
    buckets = {bucket_of(m.message_id) for m in incident}
    assert len(buckets) >= 4
    # A purge by author stays within the budget: the waves leave few gaps.
    for bucket in buckets:
        authors = [m.author_id for m in incident if bucket_of(m.message_id) == bucket]
        runs = sum(author == PLAN.flooder.user_id for author, _ in itertools.groupby(authors))
        assert runs <= RUNS_IN_BUDGET


def test_every_author_is_a_user_that_was_there_before(
    messages_by_channel: MessagesByChannel, incident: list[Message]
) -> None:
    made = {user.user_id for user in PLAN.users}
    assert len(made) == len(PLAN.users)
    for message in itertools.chain(incident, *messages_by_channel.values()):
        assert message.author_id in made
        assert message.author_id < message.message_id


def test_messages_have_replies_reactions_attachments_edits_and_pins(messages_by_channel: MessagesByChannel) -> None:
    everything = list(itertools.chain.from_iterable(messages_by_channel.values()))
    known = {message.message_id for message in everything}
    replies = [message for message in everything if message.reference]
    assert len(replies) > 5_000
    for reply in replies:
        assert reply.reference is not None
        assert reply.reference[1] in known
        assert reply.reference[0] == reply.channel_id
    assert sum(bool(message.reactions) for message in everything) > 10_000
    assert sum(bool(message.attachments) for message in everything) > 2_000
    assert sum(message.edited_at is not None for message in everything) > 2_000
    assert sum(message.pinned for message in everything) > 50
    assert not any("{" in message.content for message in everything)


def test_members_report_the_raid_and_the_spam_and_no_message_of_their_own(
    messages_by_channel: MessagesByChannel,
) -> None:
    reports = [
        report for channel, messages in messages_by_channel.items() for report in make_reports(PLAN, channel, messages)
    ]
    authors = Counter(report.message.author_id for report in reports)
    assert authors[PLAN.spammer.user_id] == 6
    assert len(authors.keys() & {raider.user_id for raider in PLAN.raiders}) >= 2
    assert all(report.message.author_id != report.reporter_id for report in reports)
    assert len({(report.message.message_id, report.reporter_id) for report in reports}) == len(reports)
