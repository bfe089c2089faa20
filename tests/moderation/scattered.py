"""A purge of many small steps: an author's messages in several buckets of several channels, among other people's."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatstore.domain.buckets import bucket_of
from chatstore.models import BucketDeletes, Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import AuditEntry, Purge
from moderation.operations.purging.sums_check import has_wrong_sums
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.moderation.channels import WILMA, confirm, ids_of, make_channel, old_ids, preview, run_to_end, write


@dataclass(frozen=True, slots=True)
class Scattered:
    """A purge with the ids that it deletes and those that it keeps, by channel."""

    purge: Purge
    deleted: dict[Channel, list[int]]
    kept: dict[Channel, list[int]]

    @property
    def is_by_row(self) -> bool:
        """Whether all steps delete by row."""
        return not self.purge.steps.exclude(kind=StepKind.ROWS).exists()

    @property
    def messages(self) -> int:
        """Number of messages that the purge deletes."""
        return sum(map(len, self.deleted.values()))

    @property
    def gone(self) -> int:
        """Number of messages that are no longer in the store, whatever the purge says."""
        left = sum(len(ids_of(channel, *self.buckets(channel))) for channel in self.kept)
        return self.messages + sum(map(len, self.kept.values())) - left

    def assert_purged(self) -> None:
        """Check that exactly the author's messages are gone and that each was counted once."""
        self.purge.refresh_from_db()
        total = totals_of(self.purge)
        assert (self.purge.state, total.deleted, total.left) == (PurgeState.DONE, self.messages, 0)
        assert total.manifest == self.messages
        assert not has_wrong_sums(self.purge.pk)
        assert set(self.purge.steps.values_list("state", flat=True)) == {StepState.COUNTED}
        for channel, kept in self.kept.items():
            assert ids_of(channel, *self.buckets(channel)) == kept
            assert lock_owner(channel.pk) is None
            noted = sum(BucketDeletes.objects.filter(channel_id=channel.pk).values_list("deletes", flat=True))
            # A range leaves two tombstones, whatever is in it.
            assert noted == len(self.deleted[channel]) if self.is_by_row else 0 < noted < len(self.deleted[channel])
        entries = AuditEntry.objects.filter(purge=self.purge, action="channel_purged")
        assert {entry.channel_id: entry.details["deleted"] for entry in entries} == {
            channel.pk: len(ids) for channel, ids in self.deleted.items()
        }

    def undo(self, moderator: User) -> None:
        """Undo the purge and check that everything is live again."""
        request_undo(self.purge.pk, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
        run_to_end(self.purge)
        self.assert_undone()

    def assert_undone(self) -> None:
        """Check that everything is live again and that each message was counted once."""
        self.purge.refresh_from_db()
        undo = self.purge.undos.get()
        total = undo_totals_of(undo)
        assert self.purge.state == PurgeState.UNDONE
        assert (total.requested, total.restored, total.failed) == (self.messages, self.messages, 0)
        assert not has_wrong_sums(self.purge.pk)
        for channel, kept in self.kept.items():
            assert ids_of(channel, *self.buckets(channel)) == sorted([*kept, *self.deleted[channel]])
            assert lock_owner(channel.pk) is None
        entries = AuditEntry.objects.filter(purge=self.purge, action="channel_restored")
        assert sum(entry.details["restored"] for entry in entries) == self.messages

    def buckets(self, channel: Channel) -> Sequence[int]:
        return sorted({bucket_of(message_id) for message_id in (*self.kept[channel], *self.deleted[channel])})


def make_scattered(moderator: User, *, channels: int = 3, buckets: int = 4, each: int = 5) -> Scattered:
    """Preview a scattered purge and confirm it."""
    scattered = preview_scattered(moderator, channels=channels, buckets=buckets, each=each)
    return replace(scattered, purge=confirm(moderator, scattered.purge))


def preview_scattered(moderator: User, *, channels: int, buckets: int, each: int = 5) -> Scattered:
    """Write some messages of an author and, among them, 4 of another one to each bucket; preview a purge of the author.

    each: messages of the author, a multiple of 5.
    """
    author = secrets.randbits(60)
    deleted: dict[Channel, list[int]] = {}
    kept: dict[Channel, list[int]] = {}
    for channel in [make_channel() for _ in range(channels)]:
        deleted[channel], kept[channel] = [], []
        for ago in range(2 + buckets, 2, -1):
            ids = old_ids(each + 4, buckets_ago=ago)
            others = ids[each // 5 :: each // 5 + 1]
            deleted[channel] += [message_id for message_id in ids if message_id not in others]
            kept[channel] += others
        write(channel, deleted[channel], author=author)
        write(channel, kept[channel], author=WILMA)
    return Scattered(preview(moderator, Selection(where=Author((author,)))), deleted, kept)
