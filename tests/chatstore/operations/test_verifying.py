"""A bucket verification reads the whole bucket once and updates the ledger, unless another job locked the channel."""

import pytest

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.live import EMPTY, Live
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import verification
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.jobs.runs import request_run, work_on_run
from chatstore.store import ledger
from tests.chatstore.channels import fresh_id, now_ms, write_messages


def verify(channel_id: int, bucket: int, otto: User) -> JobRun:
    run = work_on_run(request_run("verify", actor=otto, subject=f"{channel_id}:{bucket}").pk)
    assert run is not None
    return run


def test_a_bucket_with_messages_is_recorded_completely(otto: User) -> None:
    channel_id, bucket = fresh_id(), bucket_at(now_ms()) - 5
    first = bucket_ids(bucket)[0]
    write_messages(channel_id, [first + 5, first + 9])
    run = verify(channel_id, bucket, otto)
    assert (run.state, run.result) == (RunState.DONE, {"messages": 2, "pages": "read it"})
    assert ledger.read_live(channel_id, bucket) == Live(first + 5, first + 9, 2)
    assert lock_owner(channel_id) is None


def test_an_empty_bucket_is_skipped_from_then_on(otto: User) -> None:
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, -30)
    assert verify(channel_id, -30, otto).result == {"messages": 0, "pages": "skip it"}
    assert ledger.read_live(channel_id, -30) == EMPTY


def test_a_bucket_that_was_never_written_gets_no_row(otto: User) -> None:
    channel_id = fresh_id()
    run = verify(channel_id, 300, otto)
    assert run.state == RunState.FAILED
    assert "Nothing was ever written to this bucket" in run.error
    assert ledger.read_live(channel_id, 300) is None


def test_it_fails_while_another_job_has_the_channel_locked(otto: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "RETRY_DELAY_SECONDS", 0.01)
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, 300)
    lock_channel(channel_id, job="purge:81")
    run = verify(channel_id, 300, otto)
    assert (run.state, run.error) == (
        RunState.FAILED,
        "The channel is locked by purge 81. Try again when that is done.",
    )
    assert lock_owner(channel_id) == "purge:81"
    release_channel(channel_id, job="purge:81")
    assert verify(channel_id, 300, otto).state == RunState.DONE
