"""When authors posted for the first time, in any channel of the store; found on demand.

The author index knows in which ten-day bucket an author posted first, and in which channels. That answers most
questions. For the others, these buckets are read from their beginning, each once for all authors.

Messages that no longer exist count too, because an author who was here is not new. Those that authors withdrew are
recorded with their ids. What purges deleted is not: each of their messages may be as old as the oldest that the purge
deleted in the bucket. If nothing is known of a bucket but that the author posted there, it may have been at its start.

If other programs write the tables, the index may lack places, so that an author may have been here at any time before.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from django.conf import settings
from django.db import connection

from chatstore.domain.buckets import BucketKey, bucket_ids, bucket_of, bucket_window
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, ms_of, unix_ms
from chatstore.store.authors import oldest_places
from chatstore.store.first_posts import FirstPosts
from moderation.domain.first_seen import FirstSeen
from moderation.domain.states import DELETING, PurgeState, StepState
from moderation.models import ManifestBucket, Purge, Step

MAX_REMEMBERED_AUTHORS = 50_000
"""Authors who are remembered: about 20 MB."""

AUTHORS_AT_ONCE = 1_000

# Without a manifest, which is deleted after a year, the messages of a step may be anyone's. An index finds the steps of
# each bucket; usually there are none.
_FIRST_DELETED = f"""SELECT wanted.author_id, min(coalesce(step.first_id, '{MIN_ID}'::bigint))
    FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::bigint[]) AS wanted (author_id, channel_id, bucket, before)
    JOIN {Step._meta.db_table} AS step ON step.channel_id = wanted.channel_id AND step.bucket = wanted.bucket
        AND coalesce(step.first_id, '{MIN_ID}'::bigint) < wanted.before
        AND step.kind = ANY(%s) AND NOT step.state = ANY(%s)
    JOIN {Purge._meta.db_table} AS purge ON purge.id = step.purge_id
        AND purge.confirmed_at IS NOT NULL AND purge.state <> %s
    LEFT JOIN {ManifestBucket._meta.db_table} AS manifest ON manifest.purge_id = step.purge_id
        AND manifest.channel_id = step.channel_id AND manifest.bucket = step.bucket
    WHERE manifest.authors IS NULL OR jsonb_exists(manifest.authors, wanted.author_id::text)
    GROUP BY wanted.author_id"""

_DELETING = [kind.value for kind in DELETING]
_DELETED_NOTHING = [StepState.CANCELLED.value, StepState.HELD.value]


def proceed() -> None:
    """Do nothing between the reads of authors."""


@dataclass(slots=True)
class _Author:
    """An author as far as they are known. channel_ids: of the first bucket, until it was read; then None."""

    seen: FirstSeen
    bucket: int
    channel_ids: Sequence[int] | None


class FirstSeenReader:
    """Reads when authors posted for the first time, and remembers it.

    until: `time.monotonic()` at which exact reading ends. Authors who were not reached by then are only known by their
    periods, and `is_complete` becomes False.
    """

    def __init__(self, *, until: float = math.inf) -> None:
        self.is_complete = True
        self._until = until
        self._has_whole_index: bool = settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN
        self._authors: dict[int, _Author] = {}
        self._posts = FirstPosts()

    def get(self, author_id: int) -> FirstSeen | None:
        """Return what is known of an author so far; None: nothing."""
        known = self._authors.get(author_id)
        return None if known is None else known.seen

    def read_periods(self, author_ids: Collection[int], *, between: Callable[[], None] = proceed) -> None:
        """Read the bucket in which authors posted first. between: called from time to time.

        What is known of other authors may be forgotten. Raises `StoreUnavailable`.
        """
        if len(self._authors) > MAX_REMEMBERED_AUTHORS:
            self._authors.clear()
        for some in _in_chunks(author_id for author_id in author_ids if author_id not in self._authors):
            between()
            for author_id, (bucket, channel_ids) in oldest_places(some).items():
                start, end = map(unix_ms, bucket_window(bucket))
                period = FirstSeen(start if self._has_whole_index else ms_of(MIN_ID), end - 1)
                self._authors[author_id] = _Author(period, bucket, channel_ids)

    def read_exactly(self, posts: Mapping[int, int], *, between: Callable[[], None] = proceed) -> None:
        """Read when authors, whose periods were read, posted first. posts: the id of a message of each.

        Raises `StoreUnavailable`.
        """

        def goes_on() -> bool:
            between()
            return self._goes_on()

        known = self._authors
        unread = (author_id for author_id in posts if author_id in known and known[author_id].channel_ids is not None)
        for some in _in_chunks(unread):
            if not goes_on():
                return
            self._read_some({author_id: posts[author_id] for author_id in some}, goes_on)

    def _goes_on(self) -> bool:
        self.is_complete = self.is_complete and time.monotonic() <= self._until
        return self.is_complete

    def _read_some(self, posts: Mapping[int, int], goes_on: Callable[[], bool]) -> None:
        wanted: dict[BucketKey, dict[int, int]] = defaultdict(dict)
        for author_id, message_id in posts.items():
            author = self._authors[author_id]
            before = min(message_id, bucket_ids(author.bucket)[1] + 1, MAX_ID)
            for channel_id in author.channel_ids or ():
                wanted[channel_id, author.bucket][author_id] = before
        first = {author_id: i for author_id, i in posts.items() if bucket_of(i) == self._authors[author_id].bucket}
        found: dict[BucketKey, int | None] = {}
        for key, here in self._posts.find(wanted, goes_on=goes_on):
            found[key] = here.unnamed
            for author_id, message_id in here.posts.items():
                first[author_id] = min(first.get(author_id, message_id), message_id)
        unread = {author_id for key in wanted.keys() - found.keys() for author_id in wanted[key]}
        deleted = _first_deleted(wanted, first)
        for key, unnamed in found.items():
            if unnamed is not None:
                deleted |= {author_id: min(deleted.get(author_id, unnamed), unnamed) for author_id in wanted[key]}
        for author_id in posts.keys() - unread:
            author = self._authors[author_id]
            author.seen = self._narrow(author.seen, first.get(author_id), deleted.get(author_id))
            author.channel_ids = None

    def _narrow(self, period: FirstSeen, first: int | None, deleted: int | None) -> FirstSeen:
        """Return the bounds of the first message.

        first: its id, as far as it is known; deleted: the lowest id of others that it may be.
        """
        latest = period.latest if first is None else ms_of(first)
        ids = [message_id for message_id in (first, deleted) if message_id is not None]
        if not ids or not self._has_whole_index:
            return FirstSeen(period.earliest, latest)
        return FirstSeen(max(period.earliest, ms_of(min(ids))), latest)


def _first_deleted(wanted: Mapping[BucketKey, Mapping[int, int]], first: Mapping[int, int]) -> dict[int, int]:
    """Return the lowest id that each author may have posted in some buckets before purges deleted it.

    first: of the messages that are known; later ones do not matter.
    """
    rows = [
        (author_id, channel_id, bucket, min(before, first.get(author_id, before)))
        for (channel_id, bucket), authors in wanted.items()
        for author_id, before in authors.items()
    ]
    if not rows:
        return {}
    with connection.cursor() as cursor:
        columns = list(map(list, zip(*rows, strict=True)))
        cursor.execute(_FIRST_DELETED, [*columns, _DELETING, _DELETED_NOTHING, PurgeState.UNDONE.value])
        return dict(cursor.fetchall())


def _in_chunks(author_ids: Iterator[int]) -> Iterator[list[int]]:
    while some := list(islice(author_ids, AUTHORS_AT_ONCE)):
        yield some
