"""Posts of the last hour are counted by channel, in parts of five minutes."""

from __future__ import annotations

import time

from chatstore.store import activity
from chatstore.store.redis import redis_client
from tests.chatstore.channels import fresh_id
from tests.waiting import wait_until


def test_posts_are_counted_in_the_newest_part() -> None:
    busy, quiet = fresh_id(), fresh_id()
    for _ in range(3):
        activity.note_post(busy)
    wait_until(lambda: sum(activity.posts_of_hour([busy]).get(busy, ())) == 3)
    posts = activity.posts_of_hour([quiet, busy])
    assert set(posts) == {busy}
    assert len(posts[busy]) == activity.SLOTS
    # Between the posts five minutes may have ended.
    assert sum(posts[busy][-2:]) == 3
    assert activity.posts_of_hour([]) == {}


def test_older_parts_come_first_and_posts_of_more_than_an_hour_ago_do_not_count() -> None:
    channel = fresh_id()
    slot = int(time.time() // (activity.SLOT_MINUTES * 60))
    # One part may end while the test runs.
    for ago, posts in ((2, 5), (4, 7), (activity.SLOTS + 1, 100)):
        redis_client().zincrby(f"posts_of_slot:{slot - ago}", posts, str(channel))
    assert [number for number in activity.posts_of_hour([channel])[channel] if number] == [7, 5]
