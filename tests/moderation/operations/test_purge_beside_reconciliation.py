"""A purge does not wait for a ledger reconciliation in the same channel."""

import datetime as dt
import threading
from typing import Any

import pytest
from django.db import connection

from chatstore.domain.buckets import bucket_of
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.refresh import try_refresh_bucket
from chatstore.store import ledger
from moderation.domain.states import PurgeState
from tests.moderation.channels import (
    by_victor,
    confirm,
    everything,
    ids_of,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)


def test_a_purge_during_a_reconciliation_read_finishes_and_the_read_is_discarded(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(200)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    pages: list[str] = []

    def purge_during_read() -> None:
        if not pages:
            pages.append(run_to_end(purge).state)

    (bucket,) = {bucket for bucket, _ in ledger.read_ledger(channel.pk)}
    assert try_refresh_bucket(channel.pk, bucket, job="bookkeeping:1", between_pages=purge_during_read) is None
    assert pages == [PurgeState.DONE]
    # The run had read 200 messages; the purge's ledger entry is kept.
    live = ledger.read_live(channel.pk, bucket)
    assert live is not None
    assert live.is_empty


@pytest.mark.slow
def test_a_purge_and_a_ledger_reconciliation_of_one_channel_both_finish(mona: User) -> None:
    channel = make_channel()
    buckets = range(3, 43)
    for ago in buckets:
        ids = old_ids(40, buckets_ago=ago)
        write(channel, ids)
        note_deletes(channel.pk, bucket_of(ids[0]), 1, sent_by=postgres_now() - dt.timedelta(hours=1))
    purge = confirm(mona, preview(mona, by_victor(channel)))
    run = JobRun.objects.create(job="bookkeeping", subject=str(channel.pk), due_at=postgres_now())
    ended: list[Any] = []

    def reconcile_ledger() -> None:
        try:
            ended.append(work_on_run(run.pk))
        finally:
            connection.close()

    reconciliation = threading.Thread(target=reconcile_ledger)
    reconciliation.start()
    done = run_to_end(purge)
    reconciliation.join()
    assert (done.state, ended[0].state) == (PurgeState.DONE, RunState.DONE)
    assert ids_of(channel, *(bucket for bucket, _ in ledger.read_ledger(channel.pk))) == []
    assert all(live.is_empty for _, live in ledger.read_ledger(channel.pk))
