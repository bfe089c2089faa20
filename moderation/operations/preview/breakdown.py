"""Breakdown of a purge by channel and by author, with the numbers that can be restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from moderation.domain.states import DELETING, StepState
from moderation.models import Purge
from moderation.operations.preview.purge_summary import Preview
from moderation.operations.steps.deleted_ids import count_deleted

MAX_NAMED_AUTHORS = 50


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """Part of a channel. channel: None if the viewer may not see it. at: the first day of it there.

    kept: messages kept in the same periods; None: not counted. deleted: messages that the purge deleted and that were
    not restored.
    """

    channel_id: int
    channel: Channel | None
    matched: int
    kept: int | None
    deleted: int
    at: str


@dataclass(frozen=True, slots=True)
class AuthorShare:
    """Part of an author. is_restored: an undo restored all of their messages."""

    user_id: int
    user: ChatUser | None
    count: int
    is_restored: bool


def share_by_channel(preview: Preview, channels: Sequence[Channel], deleted: Mapping[int, int]) -> list[ChannelShare]:
    """Return every channel of the manifest, the largest first. channels: those that the viewer may see.

    deleted: number of messages that are still deleted, by channel.
    """
    visible = {channel.pk: channel for channel in channels}
    matched: Counter[int] = Counter()
    kept: dict[int, int | None] = {}
    first: dict[int, int] = {}
    for entry in preview.per_bucket:
        matched[entry.channel_id] += entry.matched
        before = kept.get(entry.channel_id, 0)
        kept[entry.channel_id] = None if before is None or entry.survivors is None else before + entry.survivors
        first[entry.channel_id] = min(entry.bucket, first.get(entry.channel_id, entry.bucket))
    return [
        ChannelShare(
            channel_id,
            visible.get(channel_id),
            count,
            kept[channel_id],
            deleted[channel_id],
            bucket_days(first[channel_id])[0].isoformat(),
        )
        for channel_id, count in matched.most_common()
    ]


def share_by_author(purge: Purge, preview: Preview) -> list[AuthorShare]:
    """Return every author of the manifest, the largest first; names of the first `MAX_NAMED_AUTHORS`."""
    users = ChatUser.objects.in_bulk([author for author, _ in preview.per_author[:MAX_NAMED_AUTHORS]])
    restored = {
        int(author)
        for part in purge.undos.exclude(finished_at=None).values_list("part", flat=True)
        if not part["channels"] and not part["messages"]
        for author in part["authors"]
    }
    return [AuthorShare(author, users.get(author), count, author in restored) for author, count in preview.per_author]


def deleted_by_channel(purge: Purge) -> Mapping[int, int]:
    """Return the number of messages that the purge deleted or found already gone, without restored ones, by channel."""
    return count_deleted(purge.steps.filter(kind__in=DELETING, state=StepState.COUNTED))
