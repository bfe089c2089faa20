"""Rows without an author are deleted a day after their last write; messages never are."""

import datetime as dt

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.runs import RunState
from chatstore.domain.snowflakes import ms_of
from chatstore.models import BucketDeletes, Channel, JobRun
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner
from chatstore.operations.coordination.clock import postgres_now, postgres_now_us
from chatstore.operations.gateway.messages import post_message, withdraw_message
from chatstore.operations.jobs.runs import work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import cassandra, counters, figures, messages
from chatstore.store.reading.reader import read_page
from moderation.models import AuditEntry
from tests.chatstore.channels import write_authorless
from tests.moderation.channels import VICTOR, ids_of, make_channel, old_ids, write

HOUR_US = 3_600_000_000
_UPDATE = "UPDATE messages USING TIMESTAMP ? SET content = ? WHERE channel_id = ? AND bucket = ? AND message_id = ?"


@pytest.fixture
def channel() -> Channel:
    """Create four messages with two orphan rows between them, a logged delete and a reconciled ledger."""
    channel = make_channel()
    ids = old_ids(6)
    write(channel, [ids[0], ids[2], ids[4], ids[5]])
    write_authorless(channel.pk, [ids[1], ids[3]])
    note_deletes(channel.pk, bucket_of(ids[0]), 2, sent_by=postgres_now() - dt.timedelta(hours=1))
    do("bookkeeping", channel)
    return channel


def do(job: str, channel: Channel) -> dict[str, int]:
    """Run the job for one channel: rows of other tests are left alone."""
    run = JobRun.objects.create(job=job, subject=str(channel.pk), due_at=postgres_now())
    ended = work_on_run(run.pk)
    assert ended is not None
    assert ended.state == RunState.DONE, ended.error
    return dict(ended.result)


def edit_again(channel: Channel, message_id: int, *, hours_ago: int) -> None:
    stamp = postgres_now_us() - hours_ago * HOUR_US
    cassandra.execute(_UPDATE, (stamp, "edited again", channel.pk, bucket_of(message_id), message_id))


def test_orphan_rows_are_deleted_and_messages_are_kept(channel: Channel) -> None:
    ids = old_ids(6)
    bucket = bucket_of(ids[0])
    before = counters.read_all()[counters.HEALED]
    result = do("authorless", channel)
    assert result == {"deleted": 2, "too young": 0, "buckets": 1, "left for the next run": 0}
    assert ids_of(channel, bucket) == [ids[0], ids[2], ids[4], ids[5]]
    assert read_page(channel.pk).hidden == 0
    assert figures.read_figures(channel.pk)[bucket]["authorless"].value == 0
    counters.send_counts()
    assert counters.read_all()[counters.HEALED] >= before + 2
    assert do("authorless", channel)["buckets"] == 0


def test_the_audit_records_who_deleted_what(channel: Channel) -> None:
    do("authorless", channel)
    entry = AuditEntry.objects.get(action="authorless_deleted", channel_id=channel.pk)
    ids = old_ids(6)
    assert entry.actor is None
    assert entry.details == {"bucket": bucket_of(ids[0]), "deleted": 2, "ids": [str(ids[1]), str(ids[3])]}


def test_an_orphan_row_written_within_a_day_is_kept(channel: Channel) -> None:
    ids = old_ids(6)
    edit_again(channel, ids[1], hours_ago=23)
    edit_again(channel, ids[3], hours_ago=25)
    result = do("authorless", channel)
    assert (result["deleted"], result["too young"]) == (1, 1)
    assert ids[1] in ids_of(channel, bucket_of(ids[0]))
    # The next run reads it again; deletes count as in flight for half a minute.
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=postgres_now())
    assert do("authorless", channel)["too young"] == 1


def test_a_late_insert_survives(channel: Channel) -> None:
    ids = old_ids(6)
    do("authorless", channel)
    edited_us = ms_of(ids[1]) * 1_000
    message = Message(channel.pk, ids[1], VICTOR, "late")
    messages.insert_message(message, stamp_us=edited_us)
    assert messages.read_message(channel.pk, ids[1]) is None
    # With a later timestamp than the edit: it was in flight towards it.
    messages.insert_message(message, stamp_us=edited_us + 1)
    assert messages.read_message(channel.pk, ids[1]) == message


def test_an_orphan_row_that_gets_its_author_is_a_message(channel: Channel) -> None:
    ids = old_ids(6)
    write(channel, [ids[1]])
    assert do("authorless", channel)["deleted"] == 1
    assert ids[1] in ids_of(channel, bucket_of(ids[0]))


def test_a_channel_locked_by_another_job_is_left_for_the_next_run(channel: Channel) -> None:
    lock_channel(channel.pk, job="purge:1")
    result = do("authorless", channel)
    assert (result["deleted"], result["left for the next run"]) == (0, 1)
    assert lock_owner(channel.pk) == "purge:1"


def test_an_orphan_row_from_a_real_race_is_found_and_kept_for_a_day() -> None:
    channel = make_channel()
    message = post_message(channel.pk, author_id=VICTOR, content="hello")
    withdraw_message(channel.pk, message.message_id, actor=VICTOR)
    # The edit had read the message before that, and is sent now.
    edit_again(channel, message.message_id, hours_ago=0)
    assert read_page(channel.pk).hidden == 1
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=postgres_now())
    do("bookkeeping", channel)
    assert do("authorless", channel) == {"deleted": 0, "too young": 1, "buckets": 1, "left for the next run": 0}
