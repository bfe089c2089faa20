"""The newest messages of one author, read from the buckets that the author index names."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from chatstore.domain.buckets import bucket_of
from chatstore.store.messages import iterate_rows

PAGE_ROWS = 2_000
"""Rows of a page: in most channels that is more than a day."""

READS_AHEAD = 16
"""Buckets whose first pages are in flight."""

_IDS = ("message_id", "author_id")


@dataclass(frozen=True, slots=True)
class AuthorPosts:
    """Messages of one author as (message id, channel id), newest first.

    is_complete: whether all from the requested id on are among them; otherwise the deadline was reached before.
    is_whole: whether these are all in the given places.
    """

    posts: Sequence[tuple[int, int]]
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
    for bucket, channel_id, pages in _open_each(places):
        is_recent = bucket >= bucket_of(since)
        if is_over(is_needed=is_recent or bucket == above or len(posts) < at_least):
            is_complete, is_whole = is_complete and not is_recent, False
            break
        above = bucket
        here = 0
        for rows in pages:
            own = [(message_id, channel_id) for message_id, author in rows if author == author_id]
            posts += own
            here += len(own)
            oldest = rows[-1][0]
            if is_over(is_needed=oldest >= since or here < at_least):
                is_complete, is_whole = is_complete and oldest < since, False
                break
    return AuthorPosts(sorted(posts, reverse=True), is_complete, is_whole)


def _open_each(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, Iterator[list[Any]]]]:
    """Yield (bucket, channel id, pages newest first), with several first pages in flight."""
    opened = (
        (bucket, channel_id, iterate_rows(channel_id, bucket, columns=_IDS, fetch_size=PAGE_ROWS))
        for bucket, channel_id in places
    )
    ahead = deque(islice(opened, READS_AHEAD))
    while ahead:
        yield ahead.popleft()
        ahead.extend(islice(opened, 1))
