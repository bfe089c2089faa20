"""What a moderator sees of a raid: the accounts with their signs, texts that are alike, and what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from chatstore.domain.messages import AUTHOR_ID, MESSAGE_ID
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import first_id_at, ms_of
from chatstore.models import Channel, Finding
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.operations.members import join_times
from moderation.domain.filters import All, Author, Before, Since
from moderation.domain.raids import Assessment, Limits
from moderation.domain.selection import Selection
from moderation.models import Purge
from moderation.operations.access.visibility import ADD_PURGE, Actor, channel_for, require
from moderation.operations.raids.detection import LOOK_BACK_MS, open_raid
from moderation.operations.raids.reading import RecentMessages, assess_channel, settings_of


@dataclass(frozen=True, slots=True)
class RaidReview:
    """The messages of a channel from one minute to another. finding: the raid that is reported there, if any.

    end_ms: exclusive; None for no end. now_ms: when it was read. joined: when its authors joined the guild (Unix ms),
    as far as it is known.
    """

    channel: Channel
    finding: Finding | None
    recent: RecentMessages
    limits: Limits
    start_ms: int
    end_ms: int | None
    now_ms: int
    joined: Mapping[int, int]

    @property
    def assessment(self) -> Assessment:
        """What the messages tell."""
        return self.recent.assessment

    @property
    def raid_start_ms(self) -> int:
        """Start of the minute in which the raid began, as far as it is known; otherwise of the time that is shown."""
        if self.finding is not None:
            return minute_of(self.finding.details["since_ms"])
        return minute_of(ms_of(self.assessment.first_id)) if self.assessment.count else self.start_ms

    @property
    def is_narrowed(self) -> bool:
        """True if another time was chosen than that of the reported raid, or less than the last half hour."""
        if self.finding is not None:
            return self.end_ms is not None or self.start_ms != self.raid_start_ms
        return self.end_ms is not None or self.start_ms > minute_of(self.now_ms - LOOK_BACK_MS)


def review_raid(user: Actor, channel_id: int, *, start_ms: int | None, end_ms: int | None) -> RaidReview:
    """Return what happened in a channel. start_ms: None for the start of the raid that is reported there.

    Raises `Forbidden`, `NotFound`, `StoreUnavailable`.
    """
    require(user, ADD_PURGE)
    channel = channel_for(user, channel_id, ADD_PURGE)
    finding = open_raid(channel_id)
    limits = settings_of([channel.guild_id])[channel.guild_id].limits
    now_ms = wall_clock_us() // 1000
    if start_ms is None:
        start_ms = minute_of(finding.details["since_ms"] if finding else now_ms - LOOK_BACK_MS)
    recent = assess_channel(
        channel_id,
        limits,
        first_id=first_id_at(start_ms),
        before=None if end_ms is None else first_id_at(end_ms),
        now_ms=now_ms,
    )
    joined = join_times(channel.guild_id, {message.author_id for message in recent.messages})
    return RaidReview(channel, finding, recent, limits, start_ms, end_ms, now_ms, joined)


def select_raid(channel_id: int, author_ids: Collection[int], *, start_ms: int, end_ms: int | None) -> Selection:
    """Return the selection of everything that accounts wrote in a channel in a time. Raises `BadInput` for none."""
    end = () if end_ms is None else (Before(first_id_at(end_ms)),)
    conditions = (Author(tuple(sorted(author_ids))), Since(first_id_at(start_ms)), *end)
    return Selection(channel_ids=(channel_id,), where=All(conditions))


def count_included(review: RaidReview, purges: Iterable[Purge]) -> Counter[int]:
    """Return how many of the messages any of these purges of the channel includes, by author.

    Left out are messages that were posted after a purge was drafted, and purges by when authors joined or posted first.
    """
    bots = frozenset(user.pk for user in review.recent.users.values() if user.is_bot)
    included: dict[int, int] = {}
    for purge in purges:
        selection = Selection.from_json(purge.selection)
        if selection.join_minutes or selection.first_seen_hours:
            continue
        before, columns = first_id_at(int(purge.created_at.timestamp() * 1000)), selection.columns
        rows = [
            [getattr(message, column) for column in columns]
            for message in review.recent.messages
            if message.message_id < before
        ]
        included |= {row[MESSAGE_ID]: row[AUTHOR_ID] for row in selection.matcher(bots=bots)(rows)}
    return Counter(included.values())


def minute_of(ms: int) -> int:
    """Return the start of the minute of a time, both in Unix milliseconds."""
    return ms // MINUTE_MS * MINUTE_MS
