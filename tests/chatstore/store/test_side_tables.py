"""Author buckets, figures and pins: the tables beside the messages."""

import datetime as dt

from chatstore.store import authors, figures, pins
from tests.chatstore.channels import fresh_id
from tests.pins import pinned_ids

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def test_an_author_is_found_wherever_they_posted_newest_first() -> None:
    author_id, here, there = fresh_id(), fresh_id(), fresh_id()
    for bucket, channel_id in ((7, here), (-3, here), (7, here), (9, there)):
        authors.ensure_author_bucket(author_id, channel_id, bucket)
    authors.ensure_author_buckets({(author_id, 8, here), (author_id, 7, here)})
    assert list(authors.author_buckets(author_id)) == [(9, there), (8, here), (7, here), (-3, here)]


def test_an_author_who_never_posted_is_not_found() -> None:
    assert list(authors.author_buckets(fresh_id())) == []


def test_figures_are_stored_with_source_and_time() -> None:
    channel_id = fresh_id()
    figures.note_figures(channel_id, 7, {"live_rows": 5, "tombstones": 0}, source="own read", measured_at=NOON)
    figures.note_figures(channel_id, 8, {"live_rows": 9}, source="repair", measured_at=NOON)
    assert figures.read_figures(channel_id) == {
        7: {
            "live_rows": figures.Figure(5, "own read", NOON),
            "tombstones": figures.Figure(0, "own read", NOON),
        },
        8: {"live_rows": figures.Figure(9, "repair", NOON)},
    }


def test_an_older_measurement_written_later_changes_nothing() -> None:
    channel_id = fresh_id()
    figures.note_figures(channel_id, 7, {"live_rows": 5}, source="own read", measured_at=NOON)
    earlier = NOON - dt.timedelta(seconds=1)
    figures.note_figures(channel_id, 7, {"live_rows": 99}, source="own read", measured_at=earlier)
    assert figures.read_figures(channel_id)[7]["live_rows"].value == 5


def test_unmeasured_values_have_no_figure() -> None:
    assert figures.read_figures(fresh_id()) == {}


def test_pins_are_listed_newest_message_first_and_can_be_removed() -> None:
    channel_id = fresh_id()
    for message_id in (5, 9, 7):
        pins.note_pin(channel_id, message_id, stamp_us=100)
    pins.drop_pin(channel_id, 7, stamp_us=101)
    pins.drop_pin(channel_id, 9, stamp_us=99)
    assert pinned_ids(channel_id) == [9, 5]
