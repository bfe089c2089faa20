"""Pages of an in-memory store equal slices of a sorted list, like those of the real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.buckets import bucket_of
from chatstore.store import cassandra, counters, ledger
from chatstore.store.messages import COLUMNS
from chatstore.store.reading import reader, search
from tests.chatstore.channels import fresh_id
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
from tests.ledger_model.model import AUTHOR, ChannelModel, Rules, Write

pytestmark = pytest.mark.unit


class Answer:
    """Available rows in place of a pending statement."""

    def __init__(self, rows: list[cassandra.Row]) -> None:
        self._rows = rows

    def rows(self) -> list[cassandra.Row]:
        return self._rows


class ModelReads:
    """The reader's four statements, answered by the model. hidden: ids whose rows have no author."""

    def __init__(self, model: ChannelModel, *, hidden: set[int]) -> None:
        self._model = model
        self._hidden = hidden

    def submit(self, cql: str, params: cassandra.Params = (), **_options: object) -> Answer:
        """Stand in for `cassandra.submit`. Raises KeyError for any other statement."""
        answers: dict[str, Callable[..., list[cassandra.Row]]] = {
            search.SELECT_DOWN: self._messages,
            search.SELECT_UP: self._messages,
            ledger._SELECT_DOWN: self._ledger_down,
            ledger._SELECT_UP: self._ledger_up,
        }
        *where, limit = params[1:]
        found = answers[cql](*where)
        return Answer((found[::-1] if cql == search.SELECT_DOWN else found)[:limit])

    def _messages(self, bucket: int, low: int, high: int) -> list[cassandra.Row]:
        return [self._row(one) for one in self._model.living(bucket) if low <= one <= high]

    def _row(self, message_id: int) -> cassandra.Row:
        if message_id in self._hidden:
            return (message_id, *[None] * (len(COLUMNS) - 1))
        values = {"message_id": message_id, "author_id": AUTHOR, "content": f"message {message_id}"}
        return tuple(values.get(column) for column in COLUMNS)

    def _ledger_down(self, start: int) -> list[cassandra.Row]:
        return [row for row in self._ledger()[::-1] if row[0] <= start]

    def _ledger_up(self, start: int) -> list[cassandra.Row]:
        return [row for row in self._ledger() if row[0] >= start]

    def _ledger(self) -> list[cassandra.Row]:
        return [(bucket, live) for bucket, (live, _) in sorted(self._model.ledger.items())]


@contextmanager
def channel_in_memory(content: Content) -> Iterator[int]:
    """Serve page reads of a channel from a model with the given content; yield its id."""
    model = ChannelModel(Rules(), now_us=0)
    for message_id in content.visible + content.hidden:
        model.ensure_row(bucket_of(message_id))
        model.insert(message_id, 1, Write())
    for bucket in content.recorded:
        model.ledger[bucket] = (content.live(bucket).as_tuple(), 1)
    reads = ModelReads(model, hidden=set(content.hidden))
    with (
        patch.object(cassandra, "submit", reads.submit),
        # Both use Redis in a thread of their own.
        patch.object(reader, "note_page_read"),
        patch.object(counters, "count"),
    ):
        yield fresh_id()


@given(content=contents(), limit=LIMITS, data=st.data())
def test_a_page_in_any_direction_is_a_slice_of_the_sorted_list(
    content: Content, limit: int, data: st.DataObject
) -> None:
    cursor = draw_cursor(data, content)
    with channel_in_memory(content) as channel_id:
        check_any_direction(channel_id, content, cursor=cursor, limit=limit)


@given(content=contents(), limit=LIMITS, data=st.data())
def test_a_page_around_an_id_has_its_neighbours_on_both_sides(
    content: Content, limit: int, data: st.DataObject
) -> None:
    middle = draw_id(data, content)
    with channel_in_memory(content) as channel_id:
        check_around(channel_id, content, middle=middle, limit=limit)


@given(content=contents(), limit=LIMITS)
def test_following_the_cursors_visits_every_message_once(content: Content, limit: int) -> None:
    with channel_in_memory(content) as channel_id:
        check_every_message_once(channel_id, content, limit=limit)
