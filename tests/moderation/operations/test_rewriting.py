"""Survivors too close to deleted messages are rewritten, and concurrent user actions win over the rewrite."""

from collections import deque
from collections.abc import Callable

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.store import messages, scans
from moderation.domain.states import PurgeState, StepKind
from moderation.models import Purge, Step
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.quarantine import MAX_SURVIVOR_BYTES
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import brief_transaction
from moderation.operations.steps.split import split_step
from moderation.operations.steps.totals import totals_of
from moderation.store.pace import Pace
from tests.moderation.channels import (
    WILMA,
    age_timestamps,
    by_victor,
    choose,
    claim,
    confirm,
    ids_of,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step

COUNT = 1_400


def tombstones_in(channel: Channel, bucket: int) -> int:
    pages = scans.read_all_ids(channel.id, bucket)
    deque(pages, maxlen=0)
    return pages.count_tombstones()


def contents(channel: Channel, bucket: int) -> dict[int, str]:
    columns = ("message_id", "content")
    return {row[0]: row[1] for page in messages.iterate_rows(channel.id, bucket, columns=columns) for row in page}


def fill(channel: Channel) -> tuple[list[int], list[int]]:
    """Write alternating messages of Victor and Wilma; return both id lists."""
    ids = old_ids(COUNT)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    return ids[::2], ids[1::2]


FROM_MEMORY, TOO_LARGE, TAKEN_OVER = "from memory", "no room in memory", "taken over"
INTERRUPTIONS = pytest.mark.parametrize("interruption", [FROM_MEMORY, TOO_LARGE, TAKEN_OVER])
"""Source of the rewritten survivors: the rows of the step's own read, or a second read."""


def run_with(purge: Purge, meanwhile: Callable[[], None], *, interruption: str) -> Step:
    """Run the purge's only step, calling `meanwhile` between its read and its writes."""
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(1_000), max_bytes=0 if interruption == TOO_LARGE else MAX_SURVIVOR_BYTES)
    assert kept.survivor_rows is not None
    assert kept.survivor_rows.is_whole == (interruption != TOO_LARGE)
    stamp_step(step, kept)
    meanwhile()
    finish_step(step, pace=Pace(10_000), quarantined=None if interruption == TAKEN_OVER else kept)
    advance_purge(purge.id)
    return step


def test_keeping_every_second_message_leaves_the_bucket_within_budget(mona: User, channel: Channel) -> None:
    _, survivors = fill(channel)
    purge = purge_now(mona, by_victor(channel))
    step = purge.steps.get()
    assert (purge.state, step.strategy, totals_of(purge).deleted) == (PurgeState.DONE, "rewrite", 700)
    assert ids_of(channel, step.bucket) == survivors
    assert tombstones_in(channel, step.bucket) <= 500


def test_few_survivors_among_many_deleted_messages_are_rewritten_too(mona: User, channel: Channel) -> None:
    ids = old_ids(6_000)
    survivors = ids[10::20]
    write(channel, sorted({*ids}.difference(survivors)))
    write(channel, survivors, author=WILMA)
    purge = purge_now(mona, by_victor(channel))
    step = purge.steps.get()
    assert (purge.state, step.strategy, totals_of(purge).deleted) == (PurgeState.DONE, "rewrite", 5_700)
    assert ids_of(channel, step.bucket) == survivors
    assert tombstones_in(channel, step.bucket) <= 500


@INTERRUPTIONS
def test_an_edit_of_a_survivor_wins_over_its_rewrite(mona: User, channel: Channel, interruption: str) -> None:
    _, survivors = fill(channel)
    purge = confirm(mona, preview(mona, by_victor(channel)))

    def edit() -> None:
        messages.update_columns(channel.id, survivors[9], {"content": "better"}, stamp_us=wall_clock_us())

    step = run_with(purge, edit, interruption=interruption)
    found = messages.read_message(channel.id, survivors[9])
    assert found is not None
    assert (found.content, found.author_id) == ("better", WILMA)
    assert ids_of(channel, step.bucket) == survivors


@INTERRUPTIONS
def test_a_survivor_withdrawn_by_its_author_stays_withdrawn(mona: User, channel: Channel, interruption: str) -> None:
    _, survivors = fill(channel)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    step = run_with(
        purge,
        lambda: messages.delete_row(channel.id, survivors[5], stamp_us=wall_clock_us()),
        interruption=interruption,
    )
    assert ids_of(channel, step.bucket) == survivors[:5] + survivors[6:]


@INTERRUPTIONS
def test_a_late_post_inside_a_rewritten_range_is_kept(mona: User, channel: Channel, interruption: str) -> None:
    matched, survivors = fill(channel)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    late = matched[100] + 1

    def post() -> None:
        message = Message(channel_id=channel.id, message_id=late, author_id=WILMA, content="late")
        messages.insert_message(message, stamp_us=wall_clock_us())

    step = run_with(purge, post, interruption=interruption)
    assert ids_of(channel, step.bucket) == sorted([*survivors, late])


def test_a_second_purge_deletes_what_the_first_one_rewrote(mona: User, channel: Channel) -> None:
    _, survivors = fill(channel)
    purge_now(mona, by_victor(channel))
    age_timestamps(channel)
    second = purge_now(mona, choose(channel.id, author_ids=(WILMA,)))
    assert totals_of(second).deleted == len(survivors)
    assert ids_of(channel, bucket_of(survivors[0])) == []


@INTERRUPTIONS
def test_rewritten_survivors_keep_every_column(mona: User, channel: Channel, interruption: str) -> None:
    matched, _ = fill(channel)
    whole = Message(
        channel_id=channel.id,
        message_id=matched[50] + 1,
        author_id=WILMA,
        content="look <b>",
        pinned=True,
        reactions={"👍": 3},
        mentions=[7, 8],
        attachments=['{"filename": "a.png"}'],
        reference=(channel.id, None),
    )
    messages.insert_message(whole, stamp_us=messages.posted_stamp(whole))
    run_with(confirm(mona, preview(mona, by_victor(channel))), lambda: None, interruption=interruption)
    assert messages.read_message(channel.id, whole.message_id) == whole


def test_messages_of_maximum_length_are_rewritten_too(mona: User, channel: Channel) -> None:
    ids = old_ids(1_200)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA, content="ä" * 3_980)
    before = contents(channel, bucket_of(ids[0]))
    purge = purge_now(mona, by_victor(channel))
    assert (purge.state, purge.steps.get().strategy) == (PurgeState.DONE, "rewrite")
    assert contents(channel, bucket_of(ids[0])) == {message_id: before[message_id] for message_id in ids[1::2]}


def test_rows_deleted_by_another_step_meanwhile_are_not_rewritten(mona: User, channel: Channel) -> None:
    """A bucket full of foreign tombstones is rewritten completely, but not while another step deletes rows of it."""
    matched, survivors = fill(channel)
    for message_id in survivors[:550]:
        messages.delete_row(channel.id, message_id, stamp_us=wall_clock_us() - 60_000_000)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    spans = purge.steps.get()
    with brief_transaction():
        split_step(spans, matched[-50:])
    for_spans, for_rows = claim(purge), claim(purge)
    assert for_spans.kind == StepKind.RANGES
    kept = quarantine_step(for_spans, pace=Pace(1_000))
    stamp_step(for_rows, quarantine_step(for_rows, pace=Pace(1_000)))
    finish_step(for_rows, pace=Pace(1_000))
    stamp_step(for_spans, kept)
    finish_step(for_spans, pace=Pace(10_000), quarantined=kept)
    assert ids_of(channel, for_spans.bucket) == survivors[550:]


def test_a_raid_is_deleted_by_row_at_once_and_the_bucket_is_rewritten_later(mona: User, channel: Channel) -> None:
    ids = recent_ids(1_500)
    write(channel, ids[::3], author=WILMA)
    write(channel, sorted(set(ids) - set(ids[::3])))
    purge = purge_now(mona, by_victor(channel))
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, 1_000)
    bucket = bucket_of(ids[0])
    rewrite = Step.objects.get(channel_id=channel.id, kind=StepKind.REWRITE)
    assert rewrite.due_at is not None
    assert tombstones_in(channel, bucket) >= 1_000
    # As if seventy minutes had passed.
    age_timestamps(channel)
    Step.objects.filter(purge_id=rewrite.purge_id).update(due_at=None)
    rewritten = run_purge(rewrite.purge_id)
    assert rewritten.state == PurgeState.DONE
    assert ids_of(channel, bucket) == ids[::3]
    assert tombstones_in(channel, bucket) <= 500


def test_a_purge_repairs_a_sealed_bucket_full_of_foreign_tombstones(mona: User, channel: Channel) -> None:
    matched, survivors = fill(channel)
    row_deleted = [*matched[:350], *survivors[:350]]
    for message_id in row_deleted:
        messages.delete_row(channel.id, message_id, stamp_us=wall_clock_us() - 60_000_000)
    bucket = bucket_of(matched[0])
    assert tombstones_in(channel, bucket) >= 700
    purge = purge_now(mona, by_victor(channel))
    assert totals_of(purge).deleted == 350
    assert ids_of(channel, bucket) == survivors[350:]
    assert tombstones_in(channel, bucket) <= 500
