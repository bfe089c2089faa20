"""Every step logs the tombstones it wrote, for the bookkeeping and for repairs."""

from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.models import BucketDeletes, Channel, JobRun
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.operations.jobs.runs import work_on_run
from chatstore.store import figures, ledger
from moderation.models import Step
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.rooms import (
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


def test_a_row_is_one_a_range_has_two_ends_and_a_bucket_is_one(mona: User) -> None:
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


def test_an_undo_notes_what_it_deletes_again(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    # The message is gone already, so nothing is deleted.
    withdraw_message(channel.pk, ids[7], actor=VICTOR)
    assert noted(channel) == {bucket_of(ids[0]): 1}
    ask_undo(purge.pk, moderator=mona, part=UndoPart())
    run_to_end(purge)
    # It was withdrawn before, so it was not restored and needs no delete.
    assert noted(channel) == {bucket_of(ids[0]): 1}


def test_what_a_purge_has_told_the_ledger_bookkeeping_need_not_read(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge_now(mona, everything(channel))
    bucket = bucket_of(ids[0])
    live = ledger.read_live(channel.pk, bucket)
    assert live is not None
    assert live.is_nothing
    assert figures.read_figures(channel.pk)[bucket]["authorless"].value == 0
    run = JobRun.objects.create(job="bookkeeping", subject=str(channel.pk), due_at=postgres_now())
    ended = work_on_run(run.pk)
    assert ended is not None
    assert (ended.did["read"], ended.did["already up to date"]) == (0, 1)


def test_a_step_that_is_counted_was_noted_with_it(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(120))
    purge = purge_now(mona, everything(channel))
    counted_at = Step.objects.get(purge_id=purge.pk).counted_at
    row = BucketDeletes.objects.get(channel_id=channel.pk)
    assert counted_at is not None
    # Logged with the time at which its deletes were out: before the verifying read.
    assert row.last_at <= counted_at
