"""`manage.py chatter` posts through the gateway interface at the given rate."""

import datetime as dt
import json
import random
import secrets
import time
from io import StringIO
from itertools import islice

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from chatstore.demo.raid import make_raiders, plan_posts
from chatstore.domain.milliseconds import DAY_MS, YEAR_MS
from chatstore.domain.snowflakes import make_snowflake
from chatstore.gateway import post_message
from chatstore.models import Channel, ChatUser, Guild, GuildMember
from chatstore.store.reading.reader import read_page
from tests.chatstore.channels import fresh_id


@pytest.mark.slow
@pytest.mark.alone
def test_it_posts_into_the_chosen_channel_at_the_rate() -> None:
    channel = Channel.objects.create(id=fresh_id(), name="chatter")
    out = StringIO()
    began = time.monotonic()
    call_command("chatter", rate=50, seconds=2, channel=[channel.id], json=True, stdout=out)
    took = time.monotonic() - began
    summary = json.loads(out.getvalue())
    assert 1.5 < took < 6
    assert "failed" not in summary
    page = read_page(channel.id, limit=200)
    assert len(page.messages) == summary["posted"] - summary.get("withdrawn", 0)
    assert 0 < summary["posted"] <= 100


def test_it_prints_what_it_did() -> None:
    channel = Channel.objects.create(id=fresh_id(), name="chatter")
    out = StringIO()
    call_command("chatter", rate=20, seconds=0.5, channel=[channel.id], stdout=out)
    assert "posted" in out.getvalue()


def test_a_raid_is_posted_by_accounts_of_the_last_day_while_members_talk() -> None:
    guild = Guild.objects.create(id=fresh_id(), name="Harbour")
    channel = Channel.objects.create(id=fresh_id(), guild=guild, name="raided")
    out, began_at = StringIO(), timezone.now()
    call_command("chatter", raid=True, rate=40, seconds=1, channel=[channel.id], json=True, stdout=out)
    summary = json.loads(out.getvalue())
    day_ago = make_snowflake((time.time_ns() // 1_000_000) - DAY_MS)
    raiders = {message.author_id for message in read_page(channel.id).messages if message.author_id > day_ago}
    assert summary["raided"] > 0
    assert ChatUser.objects.filter(pk__in=raiders).count() == len(raiders) > 1
    minutes_before = began_at - dt.timedelta(minutes=10)
    joined = GuildMember.objects.filter(guild=guild, user_id__in=raiders, joined_at__gt=minutes_before)
    assert joined.count() == len(raiders)


def test_people_who_wrote_in_a_raided_channel_talk_on() -> None:
    channel = Channel.objects.create(id=fresh_id(), name="raided")
    year_ago = make_snowflake((time.time_ns() // 1_000_000) - YEAR_MS)
    member = ChatUser.objects.create(pk=year_ago | secrets.randbits(22), name="old_hand")
    post_message(channel.pk, author_id=member.pk, content="hello")
    call_command("chatter", raid=True, rate=40, seconds=1, channel=[channel.id], json=True, stdout=StringIO())
    messages = read_page(channel.id, limit=200).messages
    assert {message.author_id for message in messages if message.author_id < year_ago + 2**22} == {member.pk}
    assert len(messages) > 2


def test_a_seed_repeats_the_posts_of_a_raid() -> None:
    def posts_of(seed: int) -> list[tuple[int, str]]:
        rng = random.Random(seed)
        return list(islice(plan_posts(rng, make_raiders(rng, 1_764_000_000_000)), 50))

    assert posts_of(5) == posts_of(5) != posts_of(6)


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_a_rate_or_duration_of_zero_is_refused(rate: float, seconds: float) -> None:
    with pytest.raises(CommandError, match="must be above 0"):
        call_command("chatter", rate=rate, seconds=seconds)


def test_an_unknown_channel_is_named() -> None:
    unknown = fresh_id()
    with pytest.raises(CommandError, match=f"Channel {unknown} does not exist"):
        call_command("chatter", channel=[unknown])
