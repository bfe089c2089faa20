"""A bucket verification reads the whole bucket once and updates the ledger, unless another job locked the channel."""

import pytest
from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.live import NOTHING, Live
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from chatstore.operations.bucket_jobs import verification
from chatstore.operations.coordination.channel_lock import hold_channel, holder_of, release_channel
from chatstore.operations.jobs.runs import ask_run, work_on_run
from chatstore.store import ledger
from tests.chatstore.arranging import fresh_id, now_ms, write_messages


def verify(channel_id: int, bucket: int, otto: User) -> JobRun:
    run = work_on_run(ask_run("verify", actor=otto, subject=f"{channel_id}:{bucket}").pk)
    assert run is not None
    return run


def test_a_bucket_that_holds_something_is_known_in_full(otto: User) -> None:
    channel_id, bucket = fresh_id(), bucket_at(now_ms()) - 5
    first = bucket_ids(bucket)[0]
    write_messages(channel_id, [first + 5, first + 9])
    run = verify(channel_id, bucket, otto)
    assert (run.state, run.did) == (RunState.DONE, {"messages": 2, "pages": "read it"})
    assert ledger.read_live(channel_id, bucket) == Live(first + 5, first + 9, 2)
    assert holder_of(channel_id) is None


def test_a_bucket_in_which_nothing_lives_is_passed_by_from_then_on(otto: User) -> None:
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, -30)
    assert verify(channel_id, -30, otto).did == {"messages": 0, "pages": "skip it"}
    assert ledger.read_live(channel_id, -30) == NOTHING


def test_one_that_was_never_written_is_left_without_a_row(otto: User) -> None:
    channel_id = fresh_id()
    run = verify(channel_id, 300, otto)
    assert run.state == RunState.FAILED
    assert "Nothing was ever written to this bucket" in run.error
    assert ledger.read_live(channel_id, 300) is None


def test_behind_another_job_it_fails_and_names_it(otto: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "PAUSE_SECONDS", 0.01)
    channel_id = fresh_id()
    ledger.ensure_row(channel_id, 300)
    hold_channel(channel_id, job="purge:81")
    run = verify(channel_id, 300, otto)
    assert (run.state, run.error) == (
        RunState.FAILED,
        "The channel is locked by purge 81. Try again when that is done.",
    )
    assert holder_of(channel_id) == "purge:81"
    release_channel(channel_id, job="purge:81")
    assert verify(channel_id, 300, otto).state == RunState.DONE
