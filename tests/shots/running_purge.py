"""A purge that appears half done, for the screenshots: it has finished, and some of its steps are reset in Postgres."""

from __future__ import annotations

import datetime as dt
from uuid import uuid4

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from tests.moderation.channels import choose, confirm, now_ms, old_ids, preview, run_to_end, write
from tests.moderation.stored_sums import store_sums

BUCKETS, LEFT = 24, 8
SPAM, CHAT = 1_900, 100
"""Deleted and kept messages per bucket."""
SECONDS = 4
"""Apparent running time of the purge in its screenshot."""


def make_running_purge(mona: User) -> Purge:
    """Purge a spammer over eight months, then reset the newest third of the steps. Takes five seconds."""
    number = now_ms() % 1_000_000
    first = bucket_ids(bucket_at(now_ms()) - BUCKETS - 2)[0] + number
    guild = Guild.objects.create(pk=first, name="Lantern Society")
    channel = Channel.objects.create(pk=first + 1, guild=guild, name="lounge", category="Town")
    victor, talker = (ChatUser.objects.create(pk=first + 2 + n, name=name) for n, name in enumerate(("Victor", "Ines")))
    for ago in range(2, BUCKETS + 2):
        ids = old_ids(SPAM + CHAT, buckets_ago=ago)
        write(channel, ids[:SPAM], author=victor.pk, content="FREE coins")
        write(channel, ids[SPAM:], author=talker.pk, content="Good morning")
    purge = run_to_end(confirm(mona, preview(mona, choose(channel.pk, author_ids=(victor.pk,)))))
    newest = [step.ordinal for step in purge.steps.order_by("-bucket")[:LEFT]]
    purge.steps.filter(ordinal__in=newest).update(
        state=StepState.QUARANTINING, deleted=0, token=uuid4(), lease_until=postgres_now() + dt.timedelta(hours=2)
    )
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.RUNNING, finished_at=None, reason="Spam wave")
    purge.refresh_from_db()
    return purge


def begin_now(purge_id: int) -> None:
    """Set the confirmation to a few seconds ago."""
    begun = postgres_now() - dt.timedelta(seconds=SECONDS)
    Purge.objects.filter(pk=purge_id).update(confirmed_at=begun, created_at=begun)


def finish_running_purge(purge: Purge) -> None:
    """Set the purge back to its real, finished state."""
    for step in purge.steps.exclude(state=StepState.COUNTED):
        purge.steps.filter(ordinal=step.ordinal).update(
            state=StepState.COUNTED, deleted=step.count, token=None, lease_until=None
        )
    store_sums()
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.DONE, finished_at=postgres_now())
