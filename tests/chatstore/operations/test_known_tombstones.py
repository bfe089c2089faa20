"""A bucket's tombstones are known while nothing was deleted there since they were counted, or ever."""

from __future__ import annotations

import datetime as dt

import pytest
from pytest_django import Settings

from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.refresh import PURGE_SOURCE, SOURCE
from chatstore.operations.ledger.tombstones import known_tombstones
from chatstore.store import figures
from tests.chatstore.channels import fresh_id

BUCKET = 100
SECOND = dt.timedelta(seconds=1)


def known(channel_id: int) -> int | None:
    return known_tombstones([(channel_id, BUCKET), (fresh_id(), BUCKET)]).get((channel_id, BUCKET))


def count(channel_id: int, tombstones: int, *, source: str = SOURCE, at: dt.datetime | None = None) -> None:
    figures.note_figures(
        channel_id, BUCKET, {"tombstones": tombstones}, source=source, measured_at=at or postgres_now()
    )


def test_a_bucket_that_was_never_counted_is_unknown() -> None:
    """Tombstones may be older than the records of deletes, or another program's."""
    assert known(fresh_id()) is None


def test_a_count_is_valid_until_something_is_deleted() -> None:
    channel_id = fresh_id()
    count(channel_id, 17)
    assert known(channel_id) == 17
    note_deletes(channel_id, BUCKET, 1)
    assert known(channel_id) is None


def test_deletes_sent_before_the_count_are_in_it() -> None:
    """A purge records its deletes as sent by the start of the read that counts its tombstones."""
    channel_id = fresh_id()
    began_at = postgres_now()
    count(channel_id, 3, source=PURGE_SOURCE, at=began_at)
    note_deletes(channel_id, BUCKET, 3, sent_by=began_at)
    assert known(channel_id) == 3


def test_deletes_without_a_count_are_unknown() -> None:
    channel_id = fresh_id()
    note_deletes(channel_id, BUCKET, 1, sent_by=postgres_now() - SECOND)
    assert known(channel_id) is None


@pytest.mark.parametrize("source", ["read aborted", "top partitions"])
def test_an_estimate_is_no_count(source: str) -> None:
    channel_id = fresh_id()
    count(channel_id, 5, source=source)
    assert known(channel_id) is None


def test_none_is_known_if_other_programs_delete_too(settings: Settings) -> None:
    settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN = False
    channel_id = fresh_id()
    count(channel_id, 17)
    assert known(channel_id) is None
