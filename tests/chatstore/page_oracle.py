"""Oracle for pages: slices of a sorted list, whatever the store and whatever its ledger records."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.live import EMPTY, UNKNOWN, Live
from chatstore.domain.messages import Page
from chatstore.store.reading.reader import read_around, read_page
from tests.chatstore.channels import ids_of

NO_DEADLINE_SECONDS = 60.0
"""No example is cut short on a busy machine; deadlines have tests of their own."""

LIMITS = st.integers(1, 12)

# Neighbouring buckets, distant ones, and both sides of 2015.
BUCKETS = st.sampled_from([-400, -2, -1, 0, 1, 2, 3, 17, 18, 200, 201, 202, 203, 204, 300])
OFFSETS = st.integers(0, 20) | st.integers(0, 2**50)


@dataclass(frozen=True)
class Content:
    """A channel's visible and hidden ids, descending, and what the ledger records for each bucket."""

    visible: list[int]
    hidden: list[int]
    recorded: dict[int, str]

    def live(self, bucket: int) -> Live:
        """Return what the ledger records for a bucket; unknown if it was only written to or cleared."""
        low, high = bucket_ids(bucket)
        inside = [one for one in self.visible + self.hidden if low <= one <= high]
        if self.recorded[bucket] == "from":
            return Live(min(inside, default=low + 5), None, None)
        if self.recorded[bucket] == "all":
            return Live(min(inside), max(inside), len(inside)) if inside else EMPTY
        return UNKNOWN


@st.composite
def contents(draw: st.DrawFn) -> Content:
    offsets = draw(st.lists(st.tuples(BUCKETS, OFFSETS, st.integers(0, 5)), max_size=40))
    ids = {bucket_ids(bucket)[0] + offset: kind for bucket, offset, kind in offsets}
    buckets = {bucket for bucket, _, _ in offsets}
    empty = draw(st.sets(BUCKETS, max_size=6)) - buckets
    recorded = {
        bucket: draw(st.sampled_from(["unset", "cleared", "from", "all"])) for bucket in sorted(buckets | empty)
    }
    return Content(
        visible=sorted((one for one, kind in ids.items() if kind), reverse=True),
        hidden=sorted((one for one, kind in ids.items() if not kind), reverse=True),
        recorded=recorded,
    )


def older_page(content: Content, *, below: int, limit: int) -> tuple[list[int], int | None, int]:
    """Return ids, cursor and number of hidden rows of an older page."""
    found = [one for one in content.visible if one < below]
    shown = found[:limit]
    cursor = shown[-1] if len(found) > limit else None
    floor = -(2**63) if cursor is None else cursor
    return shown, cursor, sum(1 for one in content.hidden if floor < one < below)


def newer_page(content: Content, *, above: int, limit: int) -> tuple[list[int], int | None, int]:
    """Return ids, cursor and number of hidden rows of a newer page; ids newest first."""
    found = [one for one in content.visible[::-1] if one > above]
    shown = found[:limit]
    cursor = (shown[-1] if shown else above) if len(found) > limit else None
    ceiling = 2**63 if cursor is None else cursor
    return shown[::-1], cursor, sum(1 for one in content.hidden if above < one < ceiling)


def check(page: Page, *, ids: list[int], older: int | None, newer: int | None, hidden: int) -> None:
    assert ids_of(page.messages) == ids
    assert (page.older, page.newer) == (older, newer)
    assert page.hidden == hidden
    assert page.searched_back_to is None
    assert all(message.content == f"message {message.message_id}" for message in page.messages)


def check_any_direction(channel_id: int, content: Content, *, cursor: int, limit: int) -> None:
    """Check the newest page, and those before and after a cursor."""
    ids, older, hidden = older_page(content, below=2**63, limit=limit)
    newest = read_page(channel_id, limit=limit, deadline_seconds=NO_DEADLINE_SECONDS)
    check(newest, ids=ids, older=older, newer=None, hidden=hidden)

    ids, older, hidden = older_page(content, below=cursor, limit=limit)
    has_newer = any(one >= cursor for one in content.visible)
    newer = (ids[0] if ids else cursor - 1) if has_newer else None
    before = read_page(channel_id, before=cursor, limit=limit, deadline_seconds=NO_DEADLINE_SECONDS)
    check(before, ids=ids, older=older, newer=newer, hidden=hidden)

    ids, newer, hidden = newer_page(content, above=cursor, limit=limit)
    has_older = any(one <= cursor for one in content.visible)
    older = (ids[-1] if ids else cursor + 1) if has_older else None
    after = read_page(channel_id, after=cursor, limit=limit, deadline_seconds=NO_DEADLINE_SECONDS)
    check(after, ids=ids, older=older, newer=newer, hidden=hidden)


def check_around(channel_id: int, content: Content, *, middle: int, limit: int) -> None:
    """Check pages around an id, with its neighbours on both sides."""
    for newer_limit in (None, limit // 3):
        most = limit // 2 if newer_limit is None else newer_limit
        upper, newer, newer_hidden = newer_page(content, above=middle, limit=most)
        lower, older, hidden = older_page(content, below=middle + 1, limit=limit - len(upper))
        page = read_around(channel_id, middle, limit, newer_limit=newer_limit, deadline_seconds=NO_DEADLINE_SECONDS)
        check(page, ids=upper + lower, older=older, newer=newer, hidden=hidden + newer_hidden)


def check_every_message_once(channel_id: int, content: Content, *, limit: int) -> None:
    """Follow the cursors down through all pages and up again."""
    page = read_page(channel_id, limit=limit, deadline_seconds=NO_DEADLINE_SECONDS)
    down = ids_of(page.messages)
    while page.older is not None:
        page = read_page(channel_id, before=page.older, limit=limit, deadline_seconds=NO_DEADLINE_SECONDS)
        down += ids_of(page.messages)
    assert down == content.visible
    up = ids_of(page.messages)[::-1]
    while page.newer is not None:
        page = read_page(channel_id, after=page.newer, limit=limit, deadline_seconds=NO_DEADLINE_SECONDS)
        up += ids_of(page.messages)[::-1]
    assert up[::-1] == content.visible


def draw_cursor(data: st.DataObject, content: Content) -> int:
    """Draw an id of the channel, or the first of a bucket, or one beside it."""
    known = content.visible + content.hidden
    cursors = st.sampled_from(known) if known else st.just(0)
    first = data.draw(cursors | BUCKETS.map(lambda bucket: bucket_ids(bucket)[0]))
    return first + data.draw(st.integers(-1, 1))


def draw_id(data: st.DataObject, content: Content) -> int:
    """Draw an id of the channel; any id if it has none."""
    known = content.visible + content.hidden
    return data.draw(st.sampled_from(known) if known else st.just(0))
