"""Pages of a channel: the newest, before or after an id, around an id. Keyset cursors only.

A page that is not full at its deadline is returned with a cursor and with how far back it searched: never a timeout,
never a false "no more messages". Rows without an author (an edit that raced a delete) are hidden and counted, never
deleted here.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from chatstore.domain.errors import BadInput
from chatstore.domain.messages import AUTHOR_ID, Message, Page
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, time_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.store import cassandra, counters, traces
from chatstore.store.foreground import note_page_read
from chatstore.store.messages import to_message
from chatstore.store.reading.ledger_window import read_ahead
from chatstore.store.reading.search import Search

MAX_PAGE_SIZE = 500

MAX_NEWEST_REQUESTS = 4
"""Slices requested for a channel's newest message before the last wave, which may be larger."""


def read_page(
    channel_id: int,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = 50,
    deadline_seconds: float | None = None,
) -> Page:
    """Return a page of a channel, newest first: the newest messages, the next older than `before`, or the next newer
    than `after` (both exclusive; at most one of them).

    deadline_seconds: by default `PAGE_DEADLINE_SECONDS`. Raises `StoreUnavailable`.
    """
    if before is not None and after is not None:
        raise BadInput(_("Give “before” or “after”, not both."))
    _check_limit(limit)
    note_page_read()
    deadline = _deadline(deadline_seconds)
    if after is not None:
        return _counted(_page_up(channel_id, after=after, limit=limit, deadline=deadline))
    return _counted(_page_down(channel_id, before=before, limit=limit, deadline=deadline))


def read_around(
    channel_id: int,
    message_id: int,
    limit: int = 50,
    *,
    newer_limit: int | None = None,
    deadline_seconds: float | None = None,
) -> Page:
    """Return a page with the messages on both sides of an id, the id itself included.

    The id need not exist: `first_id_at(ms)` returns the page around a time. newer_limit: maximum number of newer
    messages, by default half of the page; missing ones are made up for with older ones.
    """
    _check_limit(limit)
    note_page_read()
    deadline = _deadline(deadline_seconds)
    most = limit // 2 if newer_limit is None else newer_limit
    upper = _search_up(channel_id, after=message_id, need=most + 1, deadline=deadline)
    newest, newer_hidden, newer_follows = _cut(upper, most)
    missing = limit - len(newest)
    before = min(message_id + 1, MAX_ID)
    lower = _search_down(channel_id, before=before, need=missing + 1, deadline=deadline)
    page = _cut_down(lower, missing)
    newer: int | None = newest[-1].message_id if newest else message_id
    if not newer_follows:
        newer = None if upper.is_whole else upper.edge
    messages = [*newest[::-1], *page.messages]
    return _counted(replace(page, messages=messages, newer=newer, hidden=page.hidden + newer_hidden))


def read_newest(channel_ids: Sequence[int]) -> dict[int, Message]:
    """Return the newest message of each channel, without channels that have none in their newest buckets.

    All channels are read at the same time. Unlike a page of one message this doesn't look for a second one, and it
    gives up after `MAX_NEWEST_REQUESTS` for a channel: where another program deleted the messages, the ledger still
    lists every bucket. Raises `StoreUnavailable`.
    """
    note_page_read()
    deadline = _deadline(None)
    read_ahead(channel_ids)
    searches = [
        Search(
            channel_id,
            low=MIN_ID,
            high=MAX_ID,
            descending=True,
            need=1,
            deadline=deadline,
            max_requests=MAX_NEWEST_REQUESTS,
        )
        for channel_id in channel_ids
    ]
    for search in searches:
        search.start()
    found = {}
    for search in searches:
        search.finish()
        messages, hidden, _follows = _cut(search, 1)
        counters.count(counters.HIDDEN, hidden)
        if messages:
            found[search.channel_id] = messages[0]
    return found


def _counted(page: Page) -> Page:
    counters.count(counters.HIDDEN, page.hidden)
    return page


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise BadInput(_("A page has 1 to %(count)s messages.", count=MAX_PAGE_SIZE))


def _deadline(seconds: float | None) -> float:
    return time.monotonic() + (settings.PAGE_DEADLINE_SECONDS if seconds is None else seconds)


# --- One direction --------------------------------------------------------------------


def _search_down(channel_id: int, *, before: int | None, need: int, deadline: float) -> Search:
    high = MAX_ID if before is None else max(before - 1, MIN_ID)
    search = Search(channel_id, low=MIN_ID, high=high, descending=True, need=need, deadline=deadline)
    search.run()
    return search


def _search_up(channel_id: int, *, after: int, need: int, deadline: float) -> Search:
    low = min(after + 1, MAX_ID)
    search = Search(channel_id, low=low, high=MAX_ID, descending=False, need=need, deadline=deadline)
    search.run()
    return search


def _cut(search: Search, limit: int) -> tuple[list[Message], int, bool]:
    """Return the first `limit` messages in the direction of the search, the number of hidden rows among them (those
    beyond the last one belong to the next page), and whether another message follows.
    """
    messages: list[Message] = []
    hidden = beyond = 0
    for row in search.rows:
        if row[AUTHOR_ID] is None:
            beyond += 1
        elif len(messages) == limit:
            return messages, hidden, True
        else:
            messages.append(to_message(search.channel_id, row))
            hidden, beyond = hidden + beyond, 0
    return messages, hidden + beyond, False


def _cut_down(search: Search, limit: int) -> Page:
    messages, hidden, follows = _cut(search, limit)
    older = messages[-1].message_id if follows else None if search.is_whole else search.edge
    is_short = len(messages) < limit and older is not None
    searched_to = time_of(search.edge) if is_short else None
    return Page(messages, older, None, searched_to, hidden)


def _cut_up(search: Search, limit: int) -> Page:
    messages, hidden, follows = _cut(search, limit)
    newer = messages[-1].message_id if follows else None if search.is_whole else search.edge
    is_short = len(messages) < limit and newer is not None
    searched_to = time_of(search.edge) if is_short else None
    return Page(messages[::-1], None, newer, searched_to, hidden)


def _page_down(channel_id: int, *, before: int | None, limit: int, deadline: float) -> Page:
    page = _cut_down(_search_down(channel_id, before=before, need=limit + 1, deadline=deadline), limit)
    if before is None:
        return page
    others = _search_up(channel_id, after=before - 1, need=1, deadline=deadline)
    first = page.messages[0].message_id if page.messages else max(before - 1, MIN_ID)
    newer = None if others.is_whole and not _has_any(others) else first
    return replace(page, newer=newer)


def _page_up(channel_id: int, *, after: int, limit: int, deadline: float) -> Page:
    page = _cut_up(_search_up(channel_id, after=after, need=limit + 1, deadline=deadline), limit)
    others = _search_down(channel_id, before=after + 1, need=1, deadline=deadline)
    last = page.messages[-1].message_id if page.messages else min(after + 1, MAX_ID)
    older = None if others.is_whole and not _has_any(others) else last
    return replace(page, older=older)


def _has_any(search: Search) -> bool:
    return any(row[AUTHOR_ID] is not None for row in search.rows)


# --- Cost of a page ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageCost:
    """Rows that every replica scanned for the newest page: (live rows, tombstones) by address.

    buckets: those in which there were any.
    """

    page: Page
    per_replica: dict[str, tuple[int, int]]
    statements: int
    buckets: int
    milliseconds: float
    measured_at: dt.datetime

    @property
    def rows(self) -> int:
        """The most live rows that any replica read."""
        return max((live for live, _ in self.per_replica.values()), default=0)

    @property
    def tombstones(self) -> int:
        """The most that any replica scanned."""
        return max((dead for _, dead in self.per_replica.values()), default=0)


def trace_newest_page(channel_id: int, *, limit: int = 50) -> PageCost:
    """Read the newest page, then repeat its reads, traced, on every replica.

    A probe for figures, tests and benchmarks; a page itself is never traced.
    """
    began = time.monotonic()
    deadline = _deadline(None)
    search = _search_down(channel_id, before=None, need=limit + 1, deadline=deadline)
    milliseconds = (time.monotonic() - began) * 1000
    per_replica: dict[str, tuple[int, int]] = {}
    buckets = set()
    for part, rows in search.requested:
        traced = traces.execute_traced(
            search.cql, (channel_id, part.bucket, part.low, part.high, rows), consistency=cassandra.ALL
        )
        for replica, (live, dead) in traced.per_replica.items():
            sum_live, sum_dead = per_replica.get(replica, (0, 0))
            per_replica[replica] = (sum_live + live, sum_dead + dead)
            if live or dead:
                buckets.add(part.bucket)
    return PageCost(
        page=_cut_down(search, limit),
        per_replica=per_replica,
        statements=len(search.requested),
        buckets=len(buckets),
        milliseconds=milliseconds,
        measured_at=dt.datetime.now(dt.UTC),
    )
