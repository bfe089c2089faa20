"""Messages of two authors, scattered over a guild of a hundred channels."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from chatstore.domain.buckets import BucketKey, bucket_at, bucket_ids
from chatstore.models import Guild
from chatstore.store import authors, ledger
from tests.bench import baseline
from tests.bench.channels import TEXT, empty_channel, make_guild

CHANNELS, BUCKETS, MESSAGES, THEIRS = 100, 10, 270, 20
"""Channels by default, buckets of each, messages of each bucket, and how many of these an author wrote."""


@dataclass(slots=True)
class ScatteredMessages:
    """Messages of two authors among those of others. One author is purged, the other's messages are deleted by row."""

    purged: int = field(default_factory=lambda: secrets.randbits(60))
    deleted: int = field(default_factory=lambda: secrets.randbits(60))
    ids: dict[BucketKey, list[int]] = field(default_factory=dict)
    guild: Guild = field(default_factory=make_guild)
    channels: int = CHANNELS

    @property
    def messages(self) -> int:
        """Number of messages of one author."""
        return self.channels * BUCKETS * THEIRS

    def fill(self) -> None:
        """Write all messages, with their rows in the ledger and in the author index."""
        newest = bucket_at(time.time_ns() // 1_000_000) - 2
        for channel in [empty_channel(self.guild) for _ in range(self.channels)]:
            for bucket in range(newest, newest - BUCKETS, -1):
                ledger.ensure_row(channel.pk, bucket)
                first, last = bucket_ids(bucket)
                step = (last - first) // MESSAGES
                self.ids[channel.pk, bucket] = [first + step * index + 7 for index in range(MESSAGES)]
        baseline.run_groups(baseline.INSERT, (self._rows(key, ids) for key, ids in self.ids.items()))
        places = {(author, bucket, channel) for channel, bucket in self.ids for author in (self.purged, self.deleted)}
        authors.ensure_author_buckets(places)

    def insert_again(self) -> None:
        """Insert the deleted author's messages again, as a bare program would."""
        baseline.run_groups(baseline.INSERT, (self._rows(key, self._deleted_ids(key)) for key in self.ids))

    def delete_rows(self) -> None:
        """Delete the second author's messages, a batch per bucket."""
        groups = ([(*key, message_id) for message_id in self._deleted_ids(key)] for key in self.ids)
        baseline.run_groups(baseline.DELETE_ROW, groups)

    def _deleted_ids(self, key: BucketKey) -> list[int]:
        return self.ids[key][1::13][:THEIRS]

    def _rows(self, key: BucketKey, ids: Sequence[int]) -> list[tuple[object, ...]]:
        authors_of = dict.fromkeys(self.ids[key][::13][:THEIRS], self.purged)
        authors_of |= dict.fromkeys(self._deleted_ids(key), self.deleted)
        return [(*key, i, authors_of.get(i, 1 + i % 20), 0, TEXT, time.time_ns() // 1_000) for i in ids]
