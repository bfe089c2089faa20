"""What each channel and each author has of a purge, and how much of that can be brought back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from moderation.domain.states import REMOVING, StepState
from moderation.models import Purge
from moderation.operations.preview.purge_summary import Preview
from moderation.operations.steps.removed_ids import count_standing

NAMED_AT_MOST = 50


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """A channel's part. channel: None when the viewer may not see it. at: the first day of it there.

    staying: what stays in the same ten days. standing: what the purge removed and stands for.
    """

    channel_id: int
    channel: Channel | None
    going: int
    staying: int
    standing: int
    at: str


@dataclass(frozen=True, slots=True)
class AuthorShare:
    """An author's part. is_back: an undo took back all that he wrote."""

    user_id: int
    user: ChatUser | None
    count: int
    is_back: bool


def share_by_channel(purge: Purge, preview: Preview, channels: Sequence[Channel]) -> list[ChannelShare]:
    """Every channel of the manifest, the one with the most first. channels: those that the viewer may see."""
    visible = {channel.pk: channel for channel in channels}
    standing = standing_by_channel(purge)
    going: Counter[int] = Counter()
    staying: Counter[int] = Counter()
    first: dict[int, int] = {}
    for entry in preview.per_bucket:
        going[entry.channel_id] += entry.matched
        staying[entry.channel_id] += entry.survivors
        first[entry.channel_id] = min(entry.bucket, first.get(entry.channel_id, entry.bucket))
    return [
        ChannelShare(
            channel_id,
            visible.get(channel_id),
            count,
            staying[channel_id],
            standing[channel_id],
            bucket_days(first[channel_id])[0].isoformat(),
        )
        for channel_id, count in going.most_common()
    ]


def share_by_author(purge: Purge, preview: Preview) -> list[AuthorShare]:
    """Every author of the manifest, the one with the most first; names of the first `NAMED_AT_MOST`."""
    users = ChatUser.objects.in_bulk([author for author, _ in preview.per_author[:NAMED_AT_MOST]])
    back = {
        int(author)
        for part in purge.undos.exclude(finished_at=None).values_list("part", flat=True)
        if not part["channels"] and not part["messages"]
        for author in part["authors"]
    }
    return [AuthorShare(author, users.get(author), count, author in back) for author, count in preview.per_author]


def standing_by_channel(purge: Purge) -> Mapping[int, int]:
    """How many messages the purge removed, or found gone, and still stands for."""
    return count_standing(purge.steps.filter(kind__in=REMOVING, state=StepState.COUNTED))
