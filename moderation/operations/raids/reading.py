"""Assessment of a channel's recent messages: a bounded read, and what is known about their authors."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import BUCKET_MS, bucket_at
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import HOUR_MS, MINUTE_MS
from chatstore.models import ChatUser
from chatstore.operations.gateway.timeline import count_buckets
from chatstore.store.reading.reader import MAX_PAGE_SIZE, read_page
from moderation.domain.first_seen import FirstSeen
from moderation.domain.raids import Assessment, Limits, assess_messages
from moderation.models import RaidSettings
from moderation.operations.steps.first_seen import FirstSeenReader

MAX_MESSAGES = 2_000
"""Messages of a channel that are assessed, the newest ones: four pages."""

FIRST_SEEN_SECONDS = 1.0
"""For reading when authors posted first. Those who are not reached count as new for the whole of their first bucket."""

USUAL_RATE_SECONDS = 3_600
"""Age up to which the usual rate of a channel is not read again."""

MAX_USUAL_RATES = 20_000

USUAL_BUCKETS = 3
"""Complete buckets, of ten days each, of which the usual rate is the mean."""


@dataclass(frozen=True, slots=True)
class RecentMessages:
    """Messages of a time, newest first, with their authors. is_complete: False if there were too many to read."""

    messages: Sequence[Message]
    users: Mapping[int, ChatUser]
    assessment: Assessment
    is_complete: bool


def assess_channel(
    channel_id: int, limits: Limits, *, first_id: int, before: int | None = None, now_ms: int
) -> RecentMessages:
    """Read and assess the newest messages from an ID on. before: exclusive end. Raises `StoreUnavailable`."""
    messages, is_complete = _read_down_to(channel_id, first_id, before=before)
    authors = sorted({message.author_id for message in messages})
    users = ChatUser.objects.with_namesakes().in_bulk(authors)
    assessment = assess_messages(
        messages,
        first_seen=_read_first_seen(messages, since_ms=now_ms - limits.first_seen_hours * HOUR_MS),
        bots={user.pk for user in users.values() if user.is_bot},
        limits=limits,
        now_ms=now_ms,
    )
    return RecentMessages(messages, users, assessment, is_complete)


def _read_down_to(channel_id: int, first_id: int, *, before: int | None) -> tuple[list[Message], bool]:
    messages: list[Message] = []
    while len(messages) < MAX_MESSAGES:
        page = read_page(channel_id, before=before, limit=MAX_PAGE_SIZE)
        messages += [message for message in page.messages if message.message_id >= first_id]
        before = page.older
        if before is None or before <= first_id:
            return messages, True
        if page.searched_back_to is not None:
            break
    return messages, False


def _read_first_seen(messages: Sequence[Message], *, since_ms: int) -> dict[int, FirstSeen]:
    """Return when the authors of some messages posted first, exactly if it may be since a time."""
    oldest: dict[int, int] = {}
    for message in messages:
        oldest[message.author_id] = min(oldest.get(message.author_id, message.message_id), message.message_id)
    reader = FirstSeenReader(until=time.monotonic() + FIRST_SEEN_SECONDS)
    reader.read_periods(oldest.keys())
    may_be_new = (author_id for author_id in oldest if (seen := reader.get(author_id)) and seen.latest > since_ms)
    reader.read_exactly({author_id: oldest[author_id] for author_id in may_be_new})
    return {author_id: seen for author_id in oldest if (seen := reader.get(author_id)) is not None}


_usual_rates: dict[int, tuple[float, float]] = {}
"""By channel: when it was read, on the monotonic clock, and the rate."""


def usual_rate(channel_id: int, *, now_ms: int) -> float:
    """Return the channel's mean number of messages per minute in the last buckets that were counted; 0 without any.

    The current bucket is left out, since it contains the raid. Known since `USUAL_RATE_SECONDS` at most: channels that
    are always busy are asked for in each check. Raises `StoreUnavailable`.
    """
    now = time.monotonic()
    known = _usual_rates.get(channel_id)
    if known is not None and now - known[0] < USUAL_RATE_SECONDS:
        return known[1]
    rate = _read_usual_rate(channel_id, now_ms=now_ms)
    if not rate:
        # Its buckets may be counted at any time.
        return rate
    if len(_usual_rates) >= MAX_USUAL_RATES:
        _usual_rates.clear()
    _usual_rates[channel_id] = (now, rate)
    return rate


def _read_usual_rate(channel_id: int, *, now_ms: int) -> float:
    current = bucket_at(now_ms)
    counts = [entry.count for entry in count_buckets(channel_id) if entry.bucket < current and entry.count is not None]
    newest = counts[-USUAL_BUCKETS:]
    return sum(newest) / len(newest) / (BUCKET_MS / MINUTE_MS) if newest else 0.0


def settings_of(guild_ids: Collection[int | None]) -> dict[int | None, RaidSettings]:
    """Return the settings of guilds, with the defaults where there are none."""
    stored = RaidSettings.objects.in_bulk([guild_id for guild_id in guild_ids if guild_id is not None])
    return {guild_id: stored.get(guild_id or 0) or RaidSettings(guild_id=guild_id or 0) for guild_id in guild_ids}
