"""Small demo data in the real store: pages, ledger, names, and refusals."""

import datetime as dt
import io
import json
import secrets

import pytest
from django.core.management import CommandError, call_command

from chatstore.demo.messages import make_channel_messages
from chatstore.demo.plan import DemoChannel, DemoPlan, plan_demo
from chatstore.domain.errors import BadInput
from chatstore.domain.milliseconds import HOUR_MS
from chatstore.models import Channel, ChatUser, Guild, GuildMember
from chatstore.operations.coordination.channel_lock import lock_owner
from chatstore.operations.importing.seed_demo import NOTHING_WRITTEN, seed_demo, write_demo
from chatstore.store import ledger
from chatstore.store.authors import author_buckets
from chatstore.store.messages import newest_writetime
from chatstore.store.reading.reader import read_page


def plan_small() -> DemoPlan:
    """Return a plan with ids that no other test uses."""
    until = dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=secrets.randbelow(HOUR_MS))
    return plan_demo(secrets.randbits(30), until, messages=2_000, incident_messages=3_000)


@pytest.fixture(scope="module")
def plan() -> DemoPlan:
    """Write a small demo and return its plan."""
    made = plan_small()
    summary = write_demo(made)
    assert (summary.guilds, summary.channels, summary.messages) == (3, 25, 5_000)
    return made


def test_pages_show_it(plan: DemoPlan) -> None:
    for channel in (plan.channels[1], plan.incident):
        expected = make_channel_messages(plan, channel)[:-51:-1]
        page = read_page(channel.channel_id)
        assert [(m.message_id, m.content) for m in page.messages] == [(m.message_id, m.content) for m in expected]
        assert [m.reactions for m in page.messages] == [m.reactions for m in expected]


def test_the_ledger_records_the_live_ranges(plan: DemoPlan) -> None:
    messages = make_channel_messages(plan, plan.channels[1])
    rows = dict(ledger.read_ledger(plan.channels[1].channel_id))
    assert rows.keys() == {message.bucket for message in messages}
    oldest = messages[0].bucket
    ids = [message.message_id for message in messages if message.bucket == oldest]
    live = rows[oldest]
    assert (live.first, live.last, live.count) == (ids[0], ids[-1], len(ids))


def test_rows_are_stamped_with_their_own_time(plan: DemoPlan) -> None:
    message = make_channel_messages(plan, plan.incident)[0]
    stamp = newest_writetime(message.channel_id, message.message_id)
    assert stamp == int(message.posted_at.timestamp() * 1000) * 1000


def test_user_names_and_author_buckets_are_written(plan: DemoPlan) -> None:
    assert Guild.objects.filter(id__in=plan.guild_ids).count() == 3
    assert Channel.objects.get(id=plan.incident.channel_id).guild_id == plan.guild_ids[0]
    assert ChatUser.objects.filter(id__in=[user.user_id for user in plan.users]).count() == len(plan.users)
    flooded = {channel_id for _, channel_id in author_buckets(plan.flooder.user_id)}
    assert flooded == {plan.incident.channel_id}
    assert lock_owner(plan.incident.channel_id) is None


def test_members_have_roles_and_the_raiders_joined_just_before_the_raid(plan: DemoPlan) -> None:
    members = GuildMember.objects.filter(guild_id=plan.guild_ids[0])
    assert members.exclude(roles=[]).count() > 50
    general = next(channel for channel in plan.channels if channel.name == "general")
    raiders = {raider.user_id for raider in plan.raiders}
    raid = [message for message in make_channel_messages(plan, general) if message.author_id in raiders]
    joined = dict(members.filter(user_id__in=raiders).values_list("user_id", "joined_at"))
    assert joined.keys() == raiders
    for message in raid:
        joined_at = joined[message.author_id]
        assert joined_at is not None
        assert dt.timedelta(0) < message.posted_at - joined_at < dt.timedelta(minutes=45)


def test_writing_it_again_changes_nothing(plan: DemoPlan) -> None:
    before = read_page(plan.incident.channel_id)
    write_demo(plan)
    assert read_page(plan.incident.channel_id) == before


def test_existing_messages_are_reported_and_not_written_again(plan: DemoPlan) -> None:
    out = io.StringIO()
    call_command("seed_demo", f"--seed={plan.seed}", stdout=out)
    assert "already exists" in out.getvalue()
    out = io.StringIO()
    call_command("seed_demo", f"--seed={plan.seed}", "--json", stdout=out)
    assert json.loads(out.getvalue())["messages"] == 0


def test_the_next_run_completes_an_interrupted_one() -> None:
    plan = plan_small()

    def stop(channel: DemoChannel, _count: int) -> None:
        if channel is plan.channels[2]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_demo(plan, on_channel=stop)
    shown = Channel.objects.filter(guild_id__in=plan.guild_ids)
    assert set(shown.values_list("id", flat=True)) == {channel.channel_id for channel in plan.channels[:3]}
    later = dt.datetime.now(dt.UTC)
    summary = seed_demo(seed=plan.seed, until=later, messages=2_000, incident_messages=3_000)
    assert summary.channels == 22
    everything = {channel.channel_id for channel in (*plan.channels, plan.incident)}
    assert set(shown.values_list("id", flat=True)) == everything
    assert read_page(plan.incident.channel_id).messages
    assert seed_demo(seed=plan.seed, until=later, messages=2_000, incident_messages=3_000) == NOTHING_WRITTEN


def test_a_database_that_is_not_empty_is_refused(plan: DemoPlan) -> None:
    channels = Channel.objects.count()
    with pytest.raises(BadInput, match="not empty"):
        seed_demo(seed=secrets.randbits(40), until=dt.datetime.now(dt.UTC))
    with pytest.raises(CommandError, match="not empty"):
        call_command("seed_demo", f"--seed={secrets.randbits(40)}")
    assert Channel.objects.count() == channels


@pytest.mark.parametrize("until", ["tomorrow", "2999-01-01"])
def test_an_impossible_end_is_refused(until: str) -> None:
    with pytest.raises(CommandError):
        call_command("seed_demo", f"--until={until}")
