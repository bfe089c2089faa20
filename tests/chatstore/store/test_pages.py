"""Pages equal plain slices of a sorted list, in every direction and whatever the ledger knows."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_ids
from chatstore.domain.errors import BadInput
from chatstore.domain.live import NOTHING, Live
from chatstore.domain.messages import Page
from chatstore.store import ledger
from chatstore.store.reader import read_around, read_page
from tests.chatstore.arranging import fresh_id, ids_of, write_authorless, write_messages

PATIENT = 60.0
"""No example may be cut short by a busy machine; deadlines have tests of their own."""

# Close neighbours, far ones, both sides of 2015.
BUCKETS = st.sampled_from([-400, -2, -1, 0, 1, 2, 3, 17, 18, 200, 201, 202, 203, 204, 300])
PLACES = st.integers(0, 20) | st.integers(0, 2**50)


@dataclass(frozen=True)
class Content:
    """A channel's visible and hidden ids, and what the ledger is told of which bucket."""

    visible: list[int]
    hidden: list[int]
    empty: set[int]
    told: dict[int, str]


@st.composite
def contents(draw: st.DrawFn) -> Content:
    places = draw(st.lists(st.tuples(BUCKETS, PLACES, st.integers(0, 5)), max_size=40))
    ids = {bucket_ids(bucket)[0] + place: kind for bucket, place, kind in places}
    buckets = {bucket for bucket, _, _ in places}
    empty = draw(st.sets(BUCKETS, max_size=6)) - buckets
    told = {bucket: draw(st.sampled_from(["unset", "cleared", "from", "all"])) for bucket in sorted(buckets | empty)}
    return Content(
        visible=sorted((one for one, kind in ids.items() if kind), reverse=True),
        hidden=sorted((one for one, kind in ids.items() if not kind), reverse=True),
        empty=empty,
        told=told,
    )


def write_content(content: Content) -> int:
    channel_id = fresh_id()
    write_messages(channel_id, content.visible)
    write_authorless(channel_id, content.hidden)
    for bucket, told in content.told.items():
        low, high = bucket_ids(bucket)
        inside = [one for one in content.visible + content.hidden if low <= one <= high]
        ledger.ensure_row(channel_id, bucket)
        if told == "cleared":
            ledger.clear_live(channel_id, bucket)
        elif told == "from":
            first = min(inside, default=low + 5)
            ledger.set_live(channel_id, bucket, Live(first, None, None), read_began_us=10**15)
        elif told == "all":
            live = Live(min(inside), max(inside), len(inside)) if inside else NOTHING
            ledger.set_live(channel_id, bucket, live, read_began_us=10**15)
    return channel_id


def older_page(content: Content, *, below: int, limit: int) -> tuple[list[int], int | None, int]:
    """The oracle, downwards: ids, cursor, hidden among them."""
    found = [one for one in content.visible if one < below]
    shown = found[:limit]
    cursor = shown[-1] if len(found) > limit else None
    floor = -(2**63) if cursor is None else cursor
    return shown, cursor, sum(1 for one in content.hidden if floor < one < below)


def newer_page(content: Content, *, above: int, limit: int) -> tuple[list[int], int | None, int]:
    """The oracle, upwards; ids newest first."""
    found = [one for one in content.visible[::-1] if one > above]
    shown = found[:limit]
    cursor = (shown[-1] if shown else above) if len(found) > limit else None
    ceiling = 2**63 if cursor is None else cursor
    return shown[::-1], cursor, sum(1 for one in content.hidden if above < one < ceiling)


def check(page: Page, *, ids: list[int], older: int | None, newer: int | None, hidden: int) -> None:
    assert ids_of(page.messages) == ids
    assert (page.older, page.newer) == (older, newer)
    assert page.hidden == hidden
    assert page.looked_back_to is None
    assert all(message.content == f"message {message.message_id}" for message in page.messages)


@given(content=contents(), limit=st.integers(1, 12), data=st.data())
def test_a_page_in_any_direction_is_a_slice_of_the_sorted_list(
    content: Content, limit: int, data: st.DataObject
) -> None:
    channel_id = write_content(content)
    known = content.visible + content.hidden
    cursors = st.sampled_from(known) if known else st.just(0)
    cursor = data.draw(cursors | BUCKETS.map(lambda bucket: bucket_ids(bucket)[0])) + data.draw(st.integers(-1, 1))

    ids, older, hidden = older_page(content, below=2**63, limit=limit)
    newest = read_page(channel_id, limit=limit, deadline_seconds=PATIENT)
    check(newest, ids=ids, older=older, newer=None, hidden=hidden)

    ids, older, hidden = older_page(content, below=cursor, limit=limit)
    has_newer = any(one >= cursor for one in content.visible)
    newer = (ids[0] if ids else cursor - 1) if has_newer else None
    before = read_page(channel_id, before=cursor, limit=limit, deadline_seconds=PATIENT)
    check(before, ids=ids, older=older, newer=newer, hidden=hidden)

    ids, newer, hidden = newer_page(content, above=cursor, limit=limit)
    has_older = any(one <= cursor for one in content.visible)
    older = (ids[-1] if ids else cursor + 1) if has_older else None
    after = read_page(channel_id, after=cursor, limit=limit, deadline_seconds=PATIENT)
    check(after, ids=ids, older=older, newer=newer, hidden=hidden)


@given(content=contents(), limit=st.integers(1, 12), data=st.data())
def test_a_page_around_an_id_has_its_neighbours_on_both_sides(
    content: Content, limit: int, data: st.DataObject
) -> None:
    channel_id = write_content(content)
    known = content.visible + content.hidden
    middle = data.draw(st.sampled_from(known) if known else st.just(0))
    upper, newer, newer_hidden = newer_page(content, above=middle, limit=limit // 2)
    lower, older, hidden = older_page(content, below=middle + 1, limit=limit - len(upper))
    page = read_around(channel_id, middle, limit, deadline_seconds=PATIENT)
    check(page, ids=upper + lower, older=older, newer=newer, hidden=hidden + newer_hidden)


@given(content=contents(), limit=st.integers(1, 12))
def test_following_the_cursors_visits_every_message_once(content: Content, limit: int) -> None:
    channel_id = write_content(content)
    page = read_page(channel_id, limit=limit, deadline_seconds=PATIENT)
    down = ids_of(page.messages)
    while page.older is not None:
        page = read_page(channel_id, before=page.older, limit=limit, deadline_seconds=PATIENT)
        down += ids_of(page.messages)
    assert down == content.visible
    up = ids_of(page.messages)[::-1]
    while page.newer is not None:
        page = read_page(channel_id, after=page.newer, limit=limit, deadline_seconds=PATIENT)
        up += ids_of(page.messages)[::-1]
    assert up[::-1] == content.visible


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_page_of_no_size_is_refused(limit: int) -> None:
    with pytest.raises(BadInput, match="a page has 1 to 500 messages"):
        read_page(fresh_id(), limit=limit)


def test_a_page_cannot_be_before_and_after_at_once() -> None:
    with pytest.raises(BadInput, match="not both"):
        read_page(fresh_id(), before=5, after=3)


@pytest.mark.parametrize("cursor", [-(2**63), -1, 0, 2**63 - 1])
def test_a_channel_that_was_never_written_is_empty_on_all_sides(cursor: int) -> None:
    channel_id = fresh_id()
    empty = Page(messages=[], older=None, newer=None)
    assert read_page(channel_id) == empty
    assert read_page(channel_id, before=cursor) == empty
    assert read_page(channel_id, after=cursor) == empty
    assert read_around(channel_id, cursor) == empty
