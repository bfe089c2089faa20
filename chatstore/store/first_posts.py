"""First messages of authors in given buckets: read from the beginning of each bucket, as far as is needed.

What was read is remembered, for all authors and not only for those that were asked for: a scan asks for the authors of
one page after the other, and reads no bucket from its beginning twice while it is remembered. Reads keep to the live
bounds of the ledger, and those that fail on tombstones are retried in halves.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from chatstore.domain.buckets import BucketKey, bucket_ids
from chatstore.domain.live import Live
from chatstore.store import ledger
from chatstore.store.messages import iterate_rows
from chatstore.store.withdrawn import first_withdrawals_in

PAGE_ROWS = 5_000

READS_AHEAD = 16
"""Buckets whose first pages are in flight."""

BUCKETS_AT_ONCE = 32
"""Buckets that are read before others are forgotten."""

MAX_REMEMBERED_POSTS = 100_000
"""First messages that are remembered: about 20 MB."""

_IDS = ("message_id", "author_id")


@dataclass(slots=True)
class _BucketBegin:
    """What was read of a bucket from its beginning. read_to: the last id.

    posts: the first message of each author up to there. withdrawn: as in `first_withdrawals_in`.
    """

    read_to: int
    posts: dict[int, int] = field(default_factory=dict)
    withdrawn: Mapping[int | None, int] = field(default_factory=dict)

    def is_read(self, author_id: int, before: int) -> bool:
        """Return whether an author's first message, if it is before an id, was read."""
        return author_id in self.posts or before <= self.read_to + 1

    def first_of(self, author_id: int) -> int | None:
        """Return the first message of an author that was read, even if the author has withdrawn it; None: none was."""
        known = (self.posts.get(author_id), self.withdrawn.get(author_id))
        return min((message_id for message_id in known if message_id is not None), default=None)


@dataclass(frozen=True, slots=True)
class FirstInBucket:
    """First messages by author in a bucket, without authors who have none there.

    unnamed: the lowest id of legacy withdrawals, of which the author is not known; None: there are none.
    """

    posts: Mapping[int, int]
    unnamed: int | None


class FirstPosts:
    """Reads first messages, and remembers those of the buckets that were needed last."""

    def __init__(self) -> None:
        self._begins: OrderedDict[BucketKey, _BucketBegin] = OrderedDict()
        self._remembered = 0

    def find(
        self, wanted: Mapping[BucketKey, Mapping[int, int]], *, goes_on: Callable[[], bool]
    ) -> Iterator[tuple[BucketKey, FirstInBucket]]:
        """Yield each bucket with the first messages in it, in any order.

        wanted: for each bucket, ids of authors, each with the id before which their first message matters. Messages
        that their authors withdrew count; those that others deleted do not.

        goes_on: called after each page; if it returns False, the search ends, and buckets are missing.
        Raises `StoreUnavailable`.
        """
        keys = iter(wanted)
        while some := list(islice(keys, BUCKETS_AT_ONCE)):
            found = list(self._read_each({key: wanted[key] for key in some}, goes_on))
            for key in found:
                yield key, self._take(key, wanted[key])
            self._forget_oldest()
            if len(found) < len(some):
                return

    def _read_each(
        self, wanted: Mapping[BucketKey, Mapping[int, int]], goes_on: Callable[[], bool]
    ) -> Iterator[BucketKey]:
        """Read what is missing, and yield the buckets of which all is known."""
        ends = {}
        for key, authors in wanted.items():
            begin = self._begins.setdefault(key, _BucketBegin(bucket_ids(key[1])[0] - 1))
            unread = [before for author_id, before in authors.items() if not begin.is_read(author_id, before)]
            if unread:
                ends[key] = max(unread)
            else:
                yield key
        read = []
        for key, pages in _open_each({key: self._begins[key].read_to + 1 for key in ends}):
            if not self._read(key, pages, ends[key], wanted[key], goes_on):
                break
            read.append(key)
        # Only now: a withdrawal is recorded before its message is deleted.
        for key, withdrawn in first_withdrawals_in(read).items():
            self._begins[key].withdrawn = withdrawn
        yield from read

    def _read(
        self,
        key: BucketKey,
        pages: Iterator[list[Any]],
        end: int,
        authors: Mapping[int, int],
        goes_on: Callable[[], bool],
    ) -> bool:
        """Read a bucket up to an id, or until nothing is missing of the authors; return whether that was reached.

        A small one is read as a whole, which takes as long and answers other questions too.
        """
        begin = self._begins[key]
        missing = {author_id for author_id, before in authors.items() if not begin.is_read(author_id, before)}
        for rows in pages:
            for message_id, author_id in rows:
                if author_id is not None and author_id not in begin.posts:
                    begin.posts[author_id] = message_id
                    self._remembered += 1
            begin.read_to = rows[-1][0]
            missing.difference_update(begin.posts)
            if not missing or begin.read_to >= end - 1:
                return True
            if not goes_on():
                return False
        begin.read_to = bucket_ids(key[1])[1]
        return True

    def _take(self, key: BucketKey, authors: Mapping[int, int]) -> FirstInBucket:
        self._begins.move_to_end(key)
        begin = self._begins[key]
        found = ((author_id, begin.first_of(author_id)) for author_id in authors)
        posts = {author_id: message_id for author_id, message_id in found if message_id is not None}
        return FirstInBucket(posts, begin.withdrawn.get(None))

    def _forget_oldest(self) -> None:
        while self._remembered > MAX_REMEMBERED_POSTS:
            _, begin = self._begins.popitem(last=False)
            self._remembered -= len(begin.posts)


def _open_each(starts: Mapping[BucketKey, int]) -> Iterator[tuple[BucketKey, Iterator[list[Any]]]]:
    """Yield each bucket with its pages from an id on, oldest first; several first pages are in flight."""
    live = ledger.read_live_in(list(starts))
    opened = ((key, _read_live(key, first, live.get(key))) for key, first in starts.items())
    ahead = deque(islice(opened, READS_AHEAD))
    while ahead:
        yield ahead.popleft()
        ahead.extend(islice(opened, 1))


def _read_live(key: BucketKey, first: int, live: Live | None) -> Iterator[list[Any]]:
    bounds = None if live is None else live.clip(first, bucket_ids(key[1])[1])
    if bounds is None:
        # Never written, or nothing is live there.
        return iter(())
    low, high = bounds
    return iterate_rows(*key, first=low, last=high, columns=_IDS, fetch_size=PAGE_ROWS, ascending=True)
