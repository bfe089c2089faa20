"""An operator can request a bucket rewrite: all live messages are kept, and the tombstones are gone."""

import threading
import time
from collections import deque
from collections.abc import Iterable

import pytest
from django.db import connection

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import Forbidden
from chatstore.domain.messages import Message
from chatstore.domain.runs import RunState
from chatstore.domain.snowflakes import ms_of
from chatstore.models import Channel, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.operations.coordination.clock import postgres_now_us, wall_clock_us
from chatstore.operations.jobs.runs import request_run, stop_run, work_on_run
from chatstore.store import messages, scans
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.buckets.history import bucket_events
from moderation.operations.purging import manual_rewrite
from moderation.operations.purging.manual_rewrite import request_rewrite
from moderation.operations.purging.scheduling import due_purges
from moderation.operations.purging.worker import run_purge
from moderation.store import deletes
from moderation.store.pace import Pace
from tests.moderation.channels import (
    WILMA,
    age_timestamps,
    by_victor,
    ids_of,
    make_channel,
    old_ids,
    purge_now,
    recent_ids,
    write,
)


def tombstones_in(channel: Channel, bucket: int) -> int:
    pages = scans.read_all_ids(channel.pk, bucket)
    deque(pages, maxlen=0)
    return pages.count_tombstones()


def delete_then(channel: Channel, ids: Iterable[int]) -> None:
    """Delete each id by row right after its post: deletes of the last ten seconds outlive a rewrite."""
    by_bucket: dict[int, list[tuple[int, int]]] = {}
    for message_id in ids:
        by_bucket.setdefault(bucket_of(message_id), []).append((message_id, ms_of(message_id) * 1_000 + 1))
    for bucket, rows in by_bucket.items():
        deletes.delete_rows(channel.pk, bucket, [rows], pace=Pace(1e6))


def rewrite(channel: Channel, bucket: int, otto: User) -> JobRun:
    run = work_on_run(request_run("rewrite", actor=otto, subject=f"{channel.pk}:{bucket}").pk)
    assert run is not None
    return run


def purge_of(run: JobRun) -> Purge:
    return Purge.objects.get(pk=run.result["rewrite"])


def test_a_bucket_below_the_budget_is_rewritten_too(otto: User) -> None:
    channel, ids = make_channel(), old_ids(300)
    write(channel, ids)
    delete_then(channel, ids[::3])
    bucket = bucket_of(ids[0])
    assert tombstones_in(channel, bucket) == 100
    edited = ids[1]
    messages.update_columns(channel.pk, edited, {"content": "edited"}, stamp_us=wall_clock_us() - 60_000_000)
    run = rewrite(channel, bucket, otto)
    assert (run.state, run.result["messages rewritten"]) == (RunState.DONE, 200)
    assert tombstones_in(channel, bucket) == 0
    assert ids_of(channel, bucket) == [one for one in ids if one not in set(ids[::3])]
    message = messages.read_message(channel.pk, edited)
    assert message is not None
    assert message.content == "edited"


def test_an_open_bucket_is_rewritten_except_its_last_hour(otto: User) -> None:
    channel, fresh = make_channel(), recent_ids(20)
    older = recent_ids(40, minutes_ago=120)
    write(channel, [*older, *fresh])
    delete_then(channel, [*older[:30], *fresh[:5]])
    run = rewrite(channel, bucket_of(older[0]), otto)
    assert run.state == RunState.DONE
    buckets = {bucket_of(one) for one in (*older, *fresh)}
    assert ids_of(channel, *buckets) == [*older[30:], *fresh[5:]]
    # The two ends of a range, and the deletes of the last hour.
    assert sum(tombstones_in(channel, bucket) for bucket in buckets) <= 2 + 5


def test_a_bucket_of_only_tombstones_becomes_one_tombstone(otto: User) -> None:
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids)
    delete_then(channel, ids)
    run = rewrite(channel, bucket_of(ids[0]), otto)
    assert (run.state, run.result["messages rewritten"]) == (RunState.DONE, 0)
    assert tombstones_in(channel, bucket_of(ids[0])) == 0


def test_a_bucket_without_tombstones_is_not_changed(otto: User) -> None:
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids)
    run = rewrite(channel, bucket_of(ids[0]), otto)
    assert (run.state, run.result["messages rewritten"]) == (RunState.DONE, 0)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_messages_posted_during_the_rewrite_are_kept(otto: User, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, ids = make_channel(), old_ids(60)
    write(channel, ids[:50])
    delete_then(channel, ids[:20])
    late = ids[55]

    def post_and_run(purge_id: int, *, wait_for_channel: bool) -> Purge:
        # Like a late post: an old id with a current timestamp.
        row = Message(channel_id=channel.pk, message_id=late, author_id=WILMA, content="late")
        messages.insert_message(row, stamp_us=postgres_now_us())
        return run_purge(purge_id, wait_for_channel=wait_for_channel)

    monkeypatch.setattr(manual_rewrite, "run_purge", post_and_run)
    rewrite(channel, bucket_of(ids[0]), otto)
    assert ids_of(channel, bucket_of(ids[0])) == [*ids[20:50], late]


def test_the_audit_names_the_requester_and_their_purges_do_not_list_it(otto: User) -> None:
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids)
    run = rewrite(channel, bucket_of(ids[0]), otto)
    purge = purge_of(run)
    assert (purge.is_rewrite, purge.manifest) == (True, 0)
    entry = AuditEntry.objects.get(purge=purge, action="rewrite_requested")
    assert (entry.actor, entry.channel_id, entry.details) == (otto, channel.pk, {"bucket": bucket_of(ids[0])})


def test_stopping_the_run_stops_the_rewrite(otto: User) -> None:
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids)
    delete_then(channel, ids[::3])
    assert lock_channel(channel.pk, job="purge:7")
    requested = request_run("rewrite", actor=otto, subject=f"{channel.pk}:{bucket_of(ids[0])}")

    def stop_when_it_waits() -> None:
        try:
            give_up = time.monotonic() + 300
            while not JobRun.objects.exclude(progress={}).filter(pk=requested.pk).exists():
                assert time.monotonic() < give_up
                time.sleep(0.1)
            stop_run(requested.pk, actor=otto)
        finally:
            connection.close()

    otto_clicks = threading.Thread(target=stop_when_it_waits)
    otto_clicks.start()
    run = work_on_run(requested.pk)
    otto_clicks.join()
    assert run is not None
    assert (run.state, run.error) == (RunState.STOPPED, "The run was stopped.")
    assert purge_of(run).state == PurgeState.CANCELLED
    release_channel(channel.pk, job="purge:7")
    assert purge_of(run).pk not in due_purges()


def test_moderators_may_not_request_a_rewrite(mona: User) -> None:
    with pytest.raises(Forbidden):
        request_rewrite(make_channel().pk, 300, actor=mona)


def test_a_bucket_lists_the_jobs_that_touched_it_newest_first(mona: User, otto: User) -> None:
    channel, ids = make_channel(), old_ids(40)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = purge_now(mona, by_victor(channel))
    age_timestamps(channel)
    rewrite(channel, bucket_of(ids[0]), otto)
    latest, first = bucket_events(otto, channel.pk, bucket_of(ids[0]))
    assert (latest.kind, latest.listed, latest.is_done) == ("rewrite", None, True)
    assert (first.kind, first.purge_id, first.messages) == ("purge", purge.pk, 20)
    assert first.listed is not None
    assert bucket_events(otto, channel.pk, bucket_of(ids[0]) - 1) == []
