"""Breakdown of a purge by channel and by author, with the numbers that can be restored."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from chatstore.operations.coordination.clock import postgres_now
from moderation.models import Hold, Purge, Undo
from moderation.operations.holds import coverage_of, holds_in_force_since
from moderation.operations.preview.manifest_summary import Summary, stored_summaries
from moderation.operations.steps.deleted_ids import DeletedCounts, count_deleted
from moderation.operations.steps.totals import count_each_held


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """Part of a channel. channel: None if the viewer may not see it. at: the first day of it there.

    kept: messages kept in the same periods; None: not counted. deleted: messages that the purge deleted and that were
    not restored. undone: messages that it no longer deletes.
    """

    channel_id: int
    channel: Channel | None
    matched: int
    kept: int | None
    deleted: int
    undone: int
    at: str

    @property
    def is_restored(self) -> bool:
        """True if undos restored all that the purge deleted there."""
        return self.undone > 0 and not self.deleted


@dataclass(frozen=True, slots=True)
class AuthorShare:
    """Part of an author. is_restored: an undo restored all of their messages. is_held: a hold kept all of them."""

    user_id: int
    user: ChatUser | None
    count: int
    is_restored: bool
    is_held: bool


def share_by_channel(
    summary: Summary,
    channels: Mapping[int, Channel],
    deleted: Mapping[int, DeletedCounts],
    deleted_since: Mapping[int, int],
) -> list[ChannelShare]:
    """Return the largest channels of the manifest. channels: those that the viewer may see.

    deleted: what `deleted_in` returns. deleted_since: number of messages of a preview that other purges have deleted,
    by channel.
    """
    none = DeletedCounts(0, 0)
    return [
        ChannelShare(
            one.channel_id,
            channels.get(one.channel_id),
            one.matched - deleted_since.get(one.channel_id, 0),
            one.kept,
            (counts := deleted.get(one.channel_id, none)).left,
            counts.undone,
            bucket_days(one.first_bucket)[0].isoformat(),
        )
        for one in summary.channels
    ]


def share_by_author(
    summary: Summary,
    users: Mapping[int, ChatUser],
    *,
    restored: Collection[int],
    held: Collection[int],
    deleted_since: Mapping[int, int],
) -> list[AuthorShare]:
    """Return the largest authors of the manifest. users: those of them that are known.

    restored: those of whom an undo restored all messages. held: those of whom holds kept all messages. deleted_since:
    number of messages of a preview that other purges have deleted, by author.
    """
    shares = [
        AuthorShare(author, users.get(author), count - deleted_since.get(author, 0), author in restored, author in held)
        for author, count in summary.authors
    ]
    return sorted(shares, key=lambda share: -share.count) if deleted_since else shares


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
    return _held_authors([(purge, summary, held)]).get(purge.pk, frozenset())


def purges_kept_by_holds(author_id: int, purges: Collection[Purge]) -> frozenset[int]:
    """Return the IDs of the purges of which holds kept all messages of an author, as far as `held_authors` knows.

    Takes at most three statements, for any number of purges.
    """
    held = count_each_held([purge.pk for purge in purges])
    summaries = stored_summaries(held) if held else {}
    known = [(purge, summaries[purge.pk], held[purge.pk]) for purge in purges if purge.pk in summaries]
    return frozenset(purge_id for purge_id, authors in _held_authors(known).items() if author_id in authors)


def _held_authors(known: Sequence[tuple[Purge, Summary, int]]) -> dict[int, frozenset[int]]:
    """Return `held_authors` of purges with their summaries and numbers of held messages, by ID."""
    known = [(purge, summary, held) for purge, summary, held in known if held and purge.started_at is not None]
    if not known:
        return {}
    now = postgres_now()
    ended = {purge.pk: purge.finished_at or now for purge, _, _ in known}
    counts = {author for _, summary, _ in known for author, _count in summary.authors}
    channel_ids = {one.channel_id for _, summary, _ in known for one in summary.channels}
    holds = list(
        holds_in_force_since(min(ended.values())).filter(
            Q(author_id__in=counts) | Q(author_id=None, message_id=None),
            Q(channel_id=None) | Q(channel_id__in=channel_ids),
        )
    )
    return {
        purge.pk: _authors_kept(summary, held, [hold for hold in holds if _lasted(hold, purge, ended[purge.pk])])
        for purge, summary, held in known
    }


def _lasted(hold: Hold, purge: Purge, ended_at: dt.datetime) -> bool:
    """Return whether a hold was in force from before the purge began to delete until it ended."""
    is_before = purge.started_at is not None and hold.placed_at < purge.started_at
    return is_before and (hold.lifted_at is None or hold.lifted_at > ended_at)


def _authors_kept(summary: Summary, held: int, in_force: Sequence[Hold]) -> frozenset[int]:
    counts = dict(summary.authors)
    channel_ids = [one.channel_id for one in summary.channels]
    if len(channel_ids) < summary.channel_count:
        # Holds in single channels may not cover those that are not listed.
        in_force = [hold for hold in in_force if hold.channel_id is None]
    coverages = [coverage_of(in_force, channel_id) for channel_id in channel_ids]
    kept = {
        author for author in counts if all(coverage.everything or author in coverage.authors for coverage in coverages)
    }
    # A hold may have been placed in the moment in which the purge began.
    return frozenset(kept) if sum(counts[author] for author in kept) <= held else frozenset()


def deleted_in(purge: Purge, channel_ids: Sequence[int], *, are_all: bool) -> Mapping[int, DeletedCounts]:
    """Return the numbers of messages that the purge deleted or found already gone, by channel.

    Channels in which it deleted none are left out. are_all: the purge has no other channels.
    """
    steps = purge.steps.counted_deletes()
    return count_deleted(steps if are_all else steps.filter(channel_id__in=channel_ids))
