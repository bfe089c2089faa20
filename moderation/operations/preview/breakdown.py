"""Breakdown of a purge by channel and by author, with the numbers that can be restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from chatstore.operations.coordination.clock import postgres_now
from moderation.models import Purge, Undo
from moderation.operations.holds import coverage_of, holds_in_force_since
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
    """Part of an author. is_restored: an undo restored all of their messages. is_held: a hold kept all of them."""

    user_id: int
    user: ChatUser | None
    count: int
    is_restored: bool
    is_held: bool


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


def share_by_author(
    summary: Summary, users: Mapping[int, ChatUser], *, restored: Collection[int], held: Collection[int]
) -> list[AuthorShare]:
    """Return the largest authors of the manifest. users: those of them that are known.

    restored: those of whom an undo restored all messages. held: those of whom holds kept all messages.
    """
    return [
        AuthorShare(author, users.get(author), count, author in restored, author in held)
        for author, count in summary.authors
    ]


def restored_authors(undos: Iterable[Undo]) -> frozenset[int]:
    """Return the authors of whom one of a purge's undos restored all messages."""
    parts = (undo.part for undo in undos if undo.finished_at is not None)
    whole = (part for part in parts if not part["channels"] and not part["messages"])
    return frozenset(int(author) for part in whole for author in part["authors"])


def held_authors(purge: Purge, summary: Summary, *, held: int) -> frozenset[int]:
    """Return the largest authors of a purge of whom holds kept all messages. held: number of messages that they kept.

    Only what was held is recorded, not by which hold: those count that were in force from before the purge began to
    delete until it ended, in all of its channels.
    """
    if not held or purge.started_at is None:
        return frozenset()
    counts = dict(summary.authors)
    channel_ids = [one.channel_id for one in summary.channels]
    in_force = holds_in_force_since(purge.finished_at or postgres_now()).filter(
        Q(author_id__in=counts) | Q(author_id=None, message_id=None),
        Q(channel_id=None) | Q(channel_id__in=channel_ids),
        placed_at__lt=purge.started_at,
    )
    found = list(in_force)
    if len(channel_ids) < summary.channel_count:
        # Holds in single channels may not cover those that are not listed.
        found = [hold for hold in found if hold.channel_id is None]
    coverages = [coverage_of(found, channel_id) for channel_id in channel_ids]
    kept = {
        author for author in counts if all(coverage.everything or author in coverage.authors for coverage in coverages)
    }
    # A hold may have been placed in the moment in which the purge began.
    return frozenset(kept) if sum(counts[author] for author in kept) <= held else frozenset()


def deleted_in(purge: Purge, channel_ids: Sequence[int], *, are_all: bool) -> Mapping[int, int]:
    """Return the number of messages that the purge deleted or found already gone, without restored ones, by channel.

    are_all: the purge has no other channels.
    """
    steps = purge.steps.counted_deletes()
    return count_deleted(steps if are_all else steps.filter(channel_id__in=channel_ids))
