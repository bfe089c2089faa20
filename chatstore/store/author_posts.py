"""The newest messages of one author, read from the buckets that the author index names."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from chatstore.domain.buckets import bucket_of, join_keys
from chatstore.domain.errors import TooManyTombstones
from chatstore.store.messages import iterate_rows
from chatstore.store.scans import BUCKETS_PER_READ, submit_ids_in

PAGE_ROWS = 2_000
"""Rows of a page: in most channels that is more than a day."""

READS_AHEAD = 16
"""Reads whose first pages are in flight."""

_IDS = ("message_id", "author_id")


@dataclass(frozen=True, slots=True)
class AuthorPosts:
    """Messages of one author as (message id, channel id), newest first.

    last_ids: the last message by channel, where it is certain that no newer one was left unread.
    is_complete: whether all from the requested id on are among them; otherwise the deadline was reached before.
    is_whole: whether these are all in the given places.
    """

    posts: Sequence[tuple[int, int]]
    last_ids: Mapping[int, int]
    is_complete: bool
    is_whole: bool


def read_author_posts(
    author_id: int,
    places: Iterable[tuple[int, int]],
    *,
    since: int,
    at_least: int,
    seconds: float,
    more_seconds: float,
) -> AuthorPosts:
    """Read the author's messages with an id from `since` on, older ones until `at_least` are found, then all others.

    places: (bucket, channel id), the newest bucket first. seconds: for the former; more_seconds: for all. Only ids and
    authors are read. Raises `StoreUnavailable`.
    """
    began = time.monotonic()

    def is_over(*, is_needed: bool) -> bool:
        return time.monotonic() - began > (seconds if is_needed else more_seconds)

    posts: list[tuple[int, int]] = []
    above: int | None = None
    is_complete = is_whole = True
    left = iter(places)
    ahead = deque(map(_open, islice(left, READS_AHEAD)))
    while ahead:
        bucket, channel_id, pages = ahead.popleft()
        is_recent = bucket >= bucket_of(since)
        is_needed = is_recent or bucket == above or len(posts) < at_least
        if is_over(is_needed=is_needed):
            posts.sort(reverse=True)
            return AuthorPosts(posts, _last_ids(posts), is_complete and not is_recent, is_whole=False)
        if is_needed:
            above = bucket
            ahead.extend(map(_open, islice(left, 1)))
        here = 0
        for rows in pages:
            own = [(message_id, channel_id) for message_id, author in rows if author == author_id]
            posts += own
            here += len(own)
            oldest = rows[-1][0]
            if is_over(is_needed=oldest >= since or here < at_least):
                is_complete, is_whole = is_complete and oldest < since, False
                break
    last_ids = _last_ids(sorted(posts, reverse=True))
    try:
        for rows in _read_joined(left) if is_whole else ():
            if is_over(is_needed=False):
                is_whole = False
                break
            posts += [(message_id, channel_id) for channel_id, _, message_id, author in rows if author == author_id]
    except TooManyTombstones:
        # Where the others are counted, too many rows were deleted.
        is_whole = False
    posts.sort(reverse=True)
    return AuthorPosts(posts, _last_ids(posts) if is_whole else last_ids, is_complete, is_whole)


def _last_ids(posts: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the last message by channel. posts: newest first."""
    return {channel_id: message_id for message_id, channel_id in reversed(posts)}


def _open(place: tuple[int, int]) -> tuple[int, int, Iterator[list[Any]]]:
    """Request the first page of a place; return (bucket, channel id, pages newest first)."""
    bucket, channel_id = place
    return bucket, channel_id, iterate_rows(channel_id, bucket, columns=_IDS, fetch_size=PAGE_ROWS)


def _read_joined(places: Iterable[tuple[int, int]]) -> Iterator[list[Any]]:
    """Yield pages of (channel id, bucket, message id, author id) of places in any order, several in a statement.

    Of places that only have to be counted: it is for these that an author who is everywhere costs hundreds of reads.
    """
    keys = {(channel_id, bucket): 1 for bucket, channel_id in places}
    joined = join_keys(keys, limit=BUCKETS_PER_READ)
    requests = (submit_ids_in(*part, fetch_size=PAGE_ROWS) for part in joined)
    ahead = deque(islice(requests, READS_AHEAD))
    while ahead:
        yield from ahead.popleft().pages()
        ahead.extend(islice(requests, 1))
