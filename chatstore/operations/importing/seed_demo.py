"""Demo data: three guilds with members, two years of messages, an incident for moderators, and members' reports.

Written into an empty database only. The messages of a channel are written first and its name in Postgres last,
so that a page never shows half a channel; its reports follow. The incident's channel comes last. The next run
continues one that died, and derives the end of the demo from a channel's id. Rows are stamped with the times in their
ids, so that a purge need not wait.
"""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from chatstore.demo.members import make_members
from chatstore.demo.messages import make_channel_messages
from chatstore.demo.plan import (
    GUILDS,
    INCIDENT_MESSAGES,
    MESSAGES,
    DemoChannel,
    DemoPlan,
    end_of_demo,
    plan_demo,
)
from chatstore.demo.reports import make_reports
from chatstore.domain.errors import BadInput
from chatstore.domain.messages import Message
from chatstore.models import Channel, ChatUser, Guild
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.coordination.clock import check_clock
from chatstore.operations.importing.completion import refresh_buckets
from chatstore.operations.members import upsert_members
from chatstore.operations.reports import record_report
from chatstore.store.authors import ensure_author_buckets
from chatstore.store.loads import ensure_rows_in
from chatstore.store.messages import insert_messages, posted_stamp
from chatstore.store.pins import note_pin

LEASE_SECONDS = 600.0
"""Long enough for the largest channel on a busy machine, where pages have priority; a later run of the same seed
takes over the channel at once.
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SeedSummary:
    """Counts of what was written; all zero if the demo data already existed."""

    guilds: int
    channels: int
    users: int
    messages: int
    seconds: float


NOTHING_WRITTEN = SeedSummary(0, 0, 0, 0, 0.0)


def seed_demo(
    *,
    seed: int,
    until: dt.datetime,
    messages: int = MESSAGES,
    incident_messages: int = INCIDENT_MESSAGES,
    on_channel: Callable[[DemoChannel, int], object] | None = None,
) -> SeedSummary:
    """Write the demo data of a seed, ending at `until` (aware), or the missing part of it.

    on_channel: called with each channel and its number of messages. The counts allow smaller demos. Raises
    `BadInput` if the database contains anything else, or `until` is in the future.
    """
    check_clock()
    if until > dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1):
        raise BadInput("The demo data cannot end in the future.")
    plan = plan_demo(seed, until, messages=messages, incident_messages=incident_messages)
    written = _list_written(plan)
    if written:
        until = end_of_demo(min(written))
        plan = plan_demo(seed, until, messages=messages, incident_messages=incident_messages)
    elif any(model.objects.exists() for model in (Guild, Channel, ChatUser)):
        if Guild.objects.filter(id__in=plan.guild_ids).count() == len(plan.guild_ids):
            return NOTHING_WRITTEN
        raise BadInput("The database is not empty. Demo data is only written into an empty database.")
    if plan.incident.channel_id in written:
        return NOTHING_WRITTEN
    return write_demo(plan, skip=written, on_channel=on_channel)


def write_demo(
    plan: DemoPlan,
    *,
    skip: Collection[int] = (),
    on_channel: Callable[[DemoChannel, int], object] | None = None,
) -> SeedSummary:
    """Write the messages and names of a plan, whatever else exists; channels in `skip` already exist.

    Idempotent.
    """
    began = time.monotonic()
    written = 0
    channels = [each for each in (*plan.channels, plan.incident) if each.channel_id not in skip]
    for channel in channels:
        messages = _write_channel(plan, channel)
        _write_names(plan, channel)
        _write_reports(plan, channel, messages)
        written += len(messages)
        if on_channel is not None:
            on_channel(channel, len(messages))
    seconds = time.monotonic() - began
    log.info("demo: %d messages in %.1f s", written, seconds)
    return SeedSummary(len(plan.guild_ids), len(channels), len(plan.users), written, seconds)


def _list_written(plan: DemoPlan) -> set[int]:
    """Return the ids of completely written demo channels, whenever the demo ends."""
    names = {(plan.guild_ids[each.guild], each.name) for each in (*plan.channels, plan.incident)}
    found = Channel.objects.filter(guild_id__in=plan.guild_ids).values_list("id", "guild_id", "name")
    return {id_ for id_, guild_id, name in found if (guild_id, name) in names}


def _write_channel(plan: DemoPlan, channel: DemoChannel) -> list[Message]:
    job = f"seed:{plan.seed}"
    channel_id = channel.channel_id

    def renew() -> None:
        if not lock_channel(channel_id, job=job, lease_seconds=LEASE_SECONDS):
            raise BadInput(f"Channel {channel_id} is locked by another job.")

    renew()
    try:
        messages = make_channel_messages(plan, channel)
        buckets = [bucket for bucket, _ in itertools.groupby(message.bucket for message in messages)]
        ensure_rows_in(channel_id, buckets)
        ensure_author_buckets({(m.author_id, m.bucket, channel_id) for m in messages})
        insert_messages(messages, stamp_us=posted_stamp)
        for message in messages:
            if message.pinned:
                note_pin(channel_id, message.message_id, stamp_us=posted_stamp(message))
        refresh_buckets([(channel_id, bucket) for bucket in buckets], job=job, check=renew)
    finally:
        release_channel(channel_id, job=job)
    return messages


def _write_names(plan: DemoPlan, channel: DemoChannel) -> None:
    guilds = [Guild(id=id_, name=name) for id_, name in zip(plan.guild_ids, GUILDS, strict=True)]
    users = [
        ChatUser(id=user.user_id, name=user.name, display_name=user.display_name, is_bot=user.is_bot)
        for user in plan.users
    ]
    guild_id = plan.guild_ids[channel.guild]
    named = Channel(
        id=channel.channel_id,
        guild_id=guild_id,
        kind=channel.kind,
        name=channel.name,
        category=channel.category,
        topic=channel.topic,
    )
    with transaction.atomic():
        Guild.objects.bulk_create(guilds, ignore_conflicts=True)
        ChatUser.objects.bulk_create(users, ignore_conflicts=True)
        Channel.objects.bulk_create([named], ignore_conflicts=True)
        upsert_members({(guild_id, member.user_id): member for member in make_members(plan, channel.guild)})


def _write_reports(plan: DemoPlan, channel: DemoChannel, messages: Sequence[Message]) -> None:
    for report in make_reports(plan, channel, messages):
        record_report(
            channel.channel_id,
            report.message.message_id,
            reporter_id=report.reporter_id,
            category=report.category,
            text=report.text,
            author_id=report.message.author_id,
        )
