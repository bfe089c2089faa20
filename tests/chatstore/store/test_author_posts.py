"""An author who is everywhere is counted by few statements: what only has to be counted is read together."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.errors import TooManyTombstones
from chatstore.store import author_posts
from chatstore.store.author_posts import AuthorPosts, read_author_posts
from chatstore.store.scans import BUCKETS_PER_READ
from tests.chatstore.channels import fresh_id, write_messages
from tests.chatstore.recorded_statements import record_statements

AUTHOR, OTHER = 71, 72
PLACES = 60


@pytest.fixture(scope="module")
def places() -> list[tuple[int, int]]:
    """Buckets in which the author has a message between two of another one, newest first, each in its own channel."""
    now = bucket_at(time.time_ns() // 1_000_000)
    found = sorted(((now - 3 - number // 8, fresh_id()) for number in range(PLACES)), reverse=True)
    for bucket, channel_id in found:
        own = own_id(bucket)
        write_messages(channel_id, [own], author_id=AUTHOR)
        write_messages(channel_id, [own - 1, own + 1], author_id=OTHER)
    return found


def own_id(bucket: int) -> int:
    return bucket_ids(bucket)[0] + 5


def read(places: list[tuple[int, int]], *, more_seconds: float = 60.0) -> AuthorPosts:
    return read_author_posts(
        AUTHOR, places, since=bucket_ids(places[0][0] + 1)[0], at_least=5, seconds=60.0, more_seconds=more_seconds
    )


def test_all_messages_are_found_newest_first(places: list[tuple[int, int]]) -> None:
    found = read(places)
    expected = sorted(((own_id(bucket), channel_id) for bucket, channel_id in places), reverse=True)
    last_ids = {channel_id: message_id for message_id, channel_id in expected}
    assert found == AuthorPosts(expected, last_ids, is_complete=True, is_whole=True)


def test_ten_more_places_cost_one_more_statement(places: list[tuple[int, int]]) -> None:
    with record_statements() as sent:
        read(places)
    in_all = len(sent)
    with record_statements() as sent:
        read(places[:-10])
    assert in_all <= author_posts.READS_AHEAD + 8 + PLACES / BUCKETS_PER_READ
    assert in_all - len(sent) <= 2


def test_without_time_for_more_only_the_newest_are_found(places: list[tuple[int, int]]) -> None:
    found = read(places, more_seconds=0.0)
    assert len(found.posts) >= 5
    assert (found.is_complete, found.is_whole) == (True, False)
    assert found.posts[0][0] == own_id(places[0][0])
    assert found.last_ids == {channel_id: message_id for message_id, channel_id in found.posts}


def test_the_last_message_of_a_channel_is_unknown_if_newer_ones_may_be_unread(
    places: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_midway(*_: object) -> Iterator[list[tuple[int, int, int, int]]]:
        bucket, channel_id = places[-1]
        yield [(channel_id, bucket, own_id(bucket), AUTHOR)]
        raise TooManyTombstones("too many tombstones")

    monkeypatch.setattr(author_posts, "_read_joined", fail_midway)
    found = read(places)
    # The channels that are only counted are read in any order.
    assert (own_id(places[-1][0]), places[-1][1]) in found.posts
    assert places[-1][1] not in found.last_ids
    assert places[0][1] in found.last_ids


def test_places_that_cannot_be_counted_leave_a_lower_bound(
    places: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TooManyTombstones("too many tombstones")

    monkeypatch.setattr(author_posts, "submit_ids_in", fail)
    found = read(places)
    assert 5 <= len(found.posts) < PLACES
    assert (found.is_complete, found.is_whole) == (True, False)
