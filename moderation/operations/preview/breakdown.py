"""Breakdown of a purge by channel and by author, with the numbers that can be restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from moderation.models import Purge, Undo
from moderation.operations.preview.manifest_summary import Summary
from moderation.operations.steps.deleted_ids import count_deleted


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


def share_by_channel(
    summary: Summary, channels: Mapping[int, Channel], deleted: Mapping[int, int]
) -> list[ChannelShare]:
    """Return the largest channels of the manifest. channels: those that the viewer may see.

    deleted: number of messages that are still deleted, by channel.
    """
    return [
        ChannelShare(
            one.channel_id,
            channels.get(one.channel_id),
            one.matched,
            one.kept,
            deleted.get(one.channel_id, 0),
            bucket_days(one.first_bucket)[0].isoformat(),
        )
        for one in summary.channels
    ]


def share_by_author(summary: Summary, users: Mapping[int, ChatUser], restored: frozenset[int]) -> list[AuthorShare]:
    """Return the largest authors of the manifest. users: those of them that are known.

    restored: those of whom an undo restored all messages.
    """
    return [AuthorShare(author, users.get(author), count, author in restored) for author, count in summary.authors]


def restored_authors(undos: Iterable[Undo]) -> frozenset[int]:
    """Return the authors of whom one of a purge's undos restored all messages."""
    parts = (undo.part for undo in undos if undo.finished_at is not None)
    whole = (part for part in parts if not part["channels"] and not part["messages"])
    return frozenset(int(author) for part in whole for author in part["authors"])


def deleted_in(purge: Purge, channel_ids: Sequence[int], *, are_all: bool) -> Mapping[int, int]:
    """Return the number of messages that the purge deleted or found already gone, without restored ones, by channel.

    are_all: the purge has no other channels.
    """
    steps = purge.steps.counted_deletes()
    return count_deleted(steps if are_all else steps.filter(channel_id__in=channel_ids))
