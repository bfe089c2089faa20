"""Every step logs the tombstones it wrote, for the ledger reconciliation and for repairs."""

from chatstore.domain.buckets import bucket_of
from chatstore.models import BucketDeletes, Channel, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.operations.jobs.runs import work_on_run
from chatstore.store import figures, ledger
from moderation.models import Step
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    choose,
    everything,
    make_channel,
    old_ids,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)


def noted(channel: Channel) -> dict[int, int]:
    found: dict[int, int] = {}
    for bucket, deletes in BucketDeletes.objects.filter(channel_id=channel.pk).values_list("bucket", "deletes"):
        found[bucket] = found.get(bucket, 0) + deletes
    return found


def test_a_row_delete_counts_one_a_range_two_and_a_partition_one(mona: User) -> None:
    rows, ranges, dropped = make_channel(), make_channel(), make_channel()
    recent = recent_ids(5)
    write(rows, recent)
    purge_now(mona, choose(rows.pk, message_ids=recent[:3]))
    assert noted(rows) == {bucket: sum(bucket_of(one) == bucket for one in recent[:3]) for bucket in noted(rows)}
    assert sum(noted(rows).values()) == 3

    ids = old_ids(300)
    write(ranges, [one for number, one in enumerate(ids) if number % 100 != 50])
    write(ranges, ids[50::100], author=WILMA)
    purge_now(mona, by_victor(ranges))
    assert noted(ranges) == {bucket_of(ids[0]): 2 * 4}

    write(dropped, ids)
    purge_now(mona, everything(dropped))
    assert noted(dropped) == {bucket_of(ids[0]): 1}


def test_an_undo_logs_its_own_deletes(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    # The message is gone already, so nothing is deleted.
    withdraw_message(channel.pk, ids[7], actor=VICTOR)
    assert noted(channel) == {bucket_of(ids[0]): 1}
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    # It was withdrawn before, so it was not restored and needs no delete.
    assert noted(channel) == {bucket_of(ids[0]): 1}


def test_reconciliation_skips_buckets_a_purge_already_recorded(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge_now(mona, everything(channel))
    bucket = bucket_of(ids[0])
    live = ledger.read_live(channel.pk, bucket)
    assert live is not None
    assert live.is_empty
    assert figures.read_figures(channel.pk)[bucket]["authorless"].value == 0
    run = JobRun.objects.create(job="bookkeeping", subject=str(channel.pk), due_at=postgres_now())
    ended = work_on_run(run.pk)
    assert ended is not None
    assert (ended.result["read"], ended.result["already up to date"]) == (0, 1)


def test_a_counted_step_has_its_deletes_logged(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(120))
    purge = purge_now(mona, everything(channel))
    counted_at = Step.objects.get(purge_id=purge.pk).counted_at
    row = BucketDeletes.objects.get(channel_id=channel.pk)
    assert counted_at is not None
    # Logged with the time at which its deletes were out: before the verifying read.
    assert row.last_at <= counted_at
