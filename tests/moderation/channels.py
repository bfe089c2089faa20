"""Channels full of messages for moderation tests, each test with its own, with timestamps in the past."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections.abc import Iterable, Sequence
from itertools import groupby

from django.conf import settings
from django.db.models import F

from chatstore.domain.buckets import bucket_at, bucket_ids, bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import BucketStamp, Channel, ChatUser, Guild
from chatstore.models.users import User
from chatstore.store import authors, ledger, messages
from moderation.domain.filters import All, Author, Before, Filter, Since
from moderation.domain.packing import hash_bucket
from moderation.domain.selection import Selection
from moderation.models import Purge, Step, UndoStep
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.lifecycle import confirm_purge, draft_purge
from moderation.operations.purging.sums_check import has_wrong_sums
from moderation.operations.purging.worker import run_purge
from tests.moderation.steps import claim_step

VICTOR, WILMA = 71, 72
"""Chat authors."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def make_channel(*, guild: Guild | str | None = None, name: str = "room", category: str = "") -> Channel:
    """Create a channel under an id that no other test uses. guild: one that exists, or the name of a new one."""
    channel_id = make_snowflake(now_ms()) | secrets.randbits(22)
    if isinstance(guild, str):
        guild = Guild.objects.create(id=channel_id - 1, name=guild)
    return Channel.objects.create(id=channel_id, guild=guild, name=name, category=category)


def name_authors() -> None:
    """Name the chat authors, always alike: tests share them."""
    for author, name, shown in ((VICTOR, "victor71", "Victor 71"), (WILMA, "wilma72", "Wilma 72")):
        ChatUser.objects.update_or_create(pk=author, defaults={"name": name, "display_name": shown})


def old_ids(count: int, *, buckets_ago: int = 3) -> list[int]:
    """Return ids spread evenly over one sealed bucket, ascending."""
    first, last = bucket_ids(bucket_at(now_ms()) - buckets_ago)
    step = (last - first) // (count + 1)
    return [first + step * index + 1 for index in range(1, count + 1)]


def recent_ids(count: int, *, minutes_ago: float = 30, apart_ms: int = 10) -> list[int]:
    """Return ids of the last hour, ascending."""
    start = now_ms() - round(minutes_ago * MINUTE_MS)
    return [make_snowflake(start + index * apart_ms) for index in range(count)]


def write(channel: Channel, ids: Iterable[int], *, author: int = VICTOR, content: str = "hello") -> None:
    """Write messages with the time of each id as write timestamp, as if posted then."""
    rows = [
        Message(channel_id=channel.id, message_id=message_id, author_id=author, content=f"{content} {message_id}")
        for message_id in ids
    ]
    for bucket in {bucket_of(row.message_id) for row in rows}:
        ledger.ensure_row(channel.id, bucket)
        authors.ensure_author_bucket(author, channel.id, bucket)
    messages.insert_messages(rows, stamp_us=messages.posted_stamp)


def ids_of(channel: Channel, *buckets: int) -> list[int]:
    """Return the live ids in some buckets, ascending, including orphan rows."""
    found = [row[0] for bucket in buckets for page in messages.read_ids(channel.id, bucket) for row in page]
    return sorted(found)


def preview(moderator: User, selection: Selection) -> Purge:
    """Draft and scan a purge."""
    purge = draft_purge(moderator=moderator, selection=selection)
    scan_to_end(purge.id)
    purge.refresh_from_db()
    return purge


def expected_manifest_hash(channel: Channel, ids: Sequence[int]) -> bytes:
    """Return the expected manifest hash for one channel; ids ascending."""
    buckets = groupby(ids, key=bucket_of)
    return hashlib.sha256(b"".join(hash_bucket(channel.pk, list(here)) for _, here in buckets)).digest()


def confirm(moderator: User, purge: Purge, *, reason: str = "a test") -> Purge:
    """Confirm the previewed manifest."""
    return confirm_purge(purge.id, moderator=moderator, reason=reason, manifest_hash=bytes(purge.manifest_hash or b""))


def purge_now(moderator: User, selection: Selection) -> Purge:
    """Preview, confirm and run a purge to the end."""
    return run_to_end(confirm(moderator, preview(moderator, selection)))


def run_to_end(purge: Purge) -> Purge:
    """Run the purge with a long timeout, because the machine may be busy with other tests; check its sums."""
    ended = run_purge(purge.id, idle_timeout_seconds=60)
    assert not has_wrong_sums(ended.pk)
    return ended


def claim(purge: Purge) -> Step:
    """Claim the purge's next step for a new worker."""
    step = claim_step(purge.id, token=uuid.uuid4())
    assert isinstance(step, Step)
    return step


def claim_undo(purge: Purge) -> UndoStep:
    """Claim the next step of the purge's undo for a new worker."""
    step = claim_step(purge.id, token=uuid.uuid4())
    assert isinstance(step, UndoStep)
    return step


def age_timestamps(channel: Channel) -> None:
    """Move the channel's last timestamps back by ten seconds, so that the next range deletes need not wait.

    Not after an undo: restored rows are stamped now, and no range delete of the next ten seconds affects them.
    """
    age = settings.CLOCK_SKEW_SECONDS * 1_000_000
    BucketStamp.objects.filter(channel_id=channel.id).update(stamp=F("stamp") - age)


def choose(
    channel_id: int,
    *,
    author_ids: Iterable[int] = (),
    after_id: int | None = None,
    before_id: int | None = None,
    message_ids: Iterable[int] = (),
    everything: bool = False,
) -> Selection:
    """Select in one channel: given messages, or messages of some authors between two ids."""
    parts: list[Filter] = [Author(tuple(author_ids))] if author_ids else []
    parts += [] if after_id is None else [Since(after_id)]
    parts += [] if before_id is None else [Before(before_id)]
    where = All(tuple(parts)) if parts else None
    return Selection(channel_ids=(channel_id,), message_ids=tuple(message_ids), where=where, everything=everything)


def everything(channel: Channel) -> Selection:
    """Select the whole channel."""
    return choose(channel.id, everything=True)


def by_victor(channel: Channel) -> Selection:
    """Select Victor's messages in the channel."""
    return choose(channel.id, author_ids=(VICTOR,))


def buckets_of(ids: Sequence[int]) -> list[int]:
    """Return the buckets of some ids."""
    return sorted({bucket_of(message_id) for message_id in ids})
