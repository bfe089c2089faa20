"""Pages of the real store equal slices of a sorted list, whatever the ledger records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from chatstore.domain.messages import Page
from chatstore.store import ledger
from chatstore.store.reading.reader import read_around, read_page
from tests.chatstore.channels import fresh_id, write_authorless, write_messages
from tests.chatstore.page_oracle import (
    LIMITS,
    Content,
    check_any_direction,
    check_around,
    check_every_message_once,
    contents,
    draw_cursor,
    draw_id,
)
from tests.examples import on_servers


def write_content(content: Content) -> int:
    """Write the content to a fresh channel; return the channel's id."""
    channel_id = fresh_id()
    write_messages(channel_id, content.visible)
    write_authorless(channel_id, content.hidden)
    for bucket, recorded_state in content.recorded.items():
        ledger.ensure_row(channel_id, bucket)
        if recorded_state == "cleared":
            ledger.clear_live(channel_id, bucket)
        elif recorded_state != "unset":
            ledger.set_live(channel_id, bucket, content.live(bucket), read_began_us=10**15)
    return channel_id


@on_servers
@given(content=contents(), limit=LIMITS, data=st.data())
def test_a_page_in_any_direction_is_a_slice_of_the_sorted_list(
    content: Content, limit: int, data: st.DataObject
) -> None:
    cursor = draw_cursor(data, content)
    channel_id = write_content(content)
    check_any_direction(channel_id, content, cursor=cursor, limit=limit)


@on_servers
@given(content=contents(), limit=LIMITS, data=st.data())
def test_a_page_around_an_id_has_its_neighbours_on_both_sides(
    content: Content, limit: int, data: st.DataObject
) -> None:
    middle = draw_id(data, content)
    channel_id = write_content(content)
    check_around(channel_id, content, middle=middle, limit=limit)


@on_servers
@given(content=contents(), limit=LIMITS)
def test_following_the_cursors_visits_every_message_once(content: Content, limit: int) -> None:
    channel_id = write_content(content)
    check_every_message_once(channel_id, content, limit=limit)


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_page_size_of_zero_is_refused(limit: int) -> None:
    with pytest.raises(BadInput, match="A page has 1 to 500 messages"):
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
