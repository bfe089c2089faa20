"""Concurrent user actions during a purge: each wins or loses as designed, and every count stays correct.

The step is advanced by hand from state to state, so that each race occurs at an exact point.
"""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.store import messages
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.deleted_ids import deleted_ids
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from moderation.store.pace import Pace
from moderation.store.quarantine import QuarantineKey, quarantined_rows
from tests.conftest import make_user
from tests.moderation.channels import (
    WILMA,
    age_timestamps,
    buckets_of,
    by_victor,
    choose,
    claim,
    confirm,
    everything,
    ids_of,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step


def wall_us() -> int:
    return time.time_ns() // 1_000


def run_step_with(purge: Purge, meanwhile: Callable[[], None]) -> Step:
    """Run the purge's only step, calling `meanwhile` between its read and its deletes."""
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(1_000))
    meanwhile()
    stamp_step(step, kept)
    finish_step(step, pace=Pace(10_000))
    advance_purge(purge.id)
    purge.refresh_from_db()
    return step


def kept_ids(step: Step) -> list[int]:
    """Return the ids in every valid attempt of the step's quarantine."""
    place = QuarantineKey(step.purge_id, step.channel_id, step.bucket, step.read_stamp or 0)
    return sorted(row[0] for rows in quarantined_rows(place) for row in rows)


def test_a_late_post_that_arrives_inside_a_range_is_kept(mona: User, channel: Channel) -> None:
    ids = old_ids(301)
    late = ids.pop(150)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))

    def post_late() -> None:
        message = Message(channel_id=channel.id, message_id=late, author_id=WILMA, content="me too")
        messages.insert_message(message, stamp_us=wall_us())

    step = run_step_with(purge, post_late)
    assert ids_of(channel, step.bucket) == [late]
    assert (step.deleted, purge.state) == (300, PurgeState.DONE)


def test_an_edit_of_a_matched_message_is_deleted_and_quarantined_too(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))

    def edit() -> None:
        messages.update_columns(channel.id, ids[7], {"content": "edited"}, stamp_us=wall_us())

    step = run_step_with(purge, edit)
    assert ids_of(channel, step.bucket) == []
    assert (step.deleted, step.failed, purge.state) == (300, 0, PurgeState.DONE)
    assert kept_ids(step) == ids


def test_a_message_written_just_before_the_read_is_deleted_too(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids[1:])
    message = Message(channel_id=channel.id, message_id=ids[0], author_id=WILMA, content="imported")
    messages.insert_message(message, stamp_us=wall_us())
    purge = purge_now(mona, everything(channel))
    assert ids_of(channel, bucket_of(ids[0])) == []
    assert totals_of(purge).deleted == 200


def test_messages_deleted_by_others_meanwhile_count_as_already_gone(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    for message_id in ids[:5]:
        messages.delete_row(channel.id, message_id, stamp_us=wall_us())
    purge = run_purge(purge.id)
    total = totals_of(purge)
    assert (total.deleted, total.already_gone, total.left) == (195, 5, 0)


def test_a_row_written_again_after_its_delete_survives_in_its_new_version(mona: User, channel: Channel) -> None:
    ids = recent_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))

    def edit() -> None:
        messages.update_columns(channel.id, ids[3], {"content": "changed my mind"}, stamp_us=wall_us())

    step = run_step_with(purge, edit)
    assert ids_of(channel, step.bucket) == []
    assert step.deleted == 20


def test_overlapping_purges_count_each_message_once(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids)
    first = preview(mona, choose(channel.id, before_id=ids[200]))
    second = preview(mona, choose(channel.id, after_id=ids[100]))
    first = run_purge(confirm(mona, first).id)
    age_timestamps(channel)
    second = run_purge(confirm(mona, second).id)
    sums = totals_of(first), totals_of(second)
    assert [(total.deleted, total.already_gone) for total in sums] == [(200, 0), (100, 100)]
    assert deleted_ids(channel.id, bucket_of(ids[0])) == set(ids)


def run_at_once(*purges: Purge) -> list[Purge]:
    """Run each purge in a worker of its own, concurrently."""

    def run(purge: Purge) -> Purge:
        try:
            return run_purge(purge.id, idle_timeout_seconds=60)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(purges)) as workers:
        return list(workers.map(run, purges))


@pytest.mark.slow
def test_two_moderators_at_once_delete_and_restore_each_message_once(mona: User, channel: Channel) -> None:
    other = make_user("mo", group="moderators")
    old, recent = old_ids(1_200), recent_ids(300)
    write(channel, [*old[::2], *recent[:200]])
    write(channel, [*old[1::2], *recent[200:]], author=WILMA)
    # Victor's 800 messages; both purges include the older half of the old ones.
    drafts = [
        (mona, preview(mona, by_victor(channel))),
        (other, preview(other, choose(channel.id, before_id=old[600]))),
    ]
    purges = run_at_once(*(confirm(moderator, draft) for moderator, draft in drafts))
    assert [purge.state for purge in purges] == [PurgeState.DONE] * 2
    sums = [totals_of(purge) for purge in purges]
    assert [total.deleted + total.already_gone for total in sums] == [800, 600]
    assert sorted(total.already_gone for total in sums) == [0, 300]
    buckets = buckets_of([*old, *recent])
    assert ids_of(channel, *buckets) == sorted([*old[601::2], *recent[200:]])

    undos = [
        request_undo(purge.id, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
        for (moderator, _), purge in zip(drafts, purges, strict=True)
    ]
    assert [purge.state for purge in run_at_once(*purges)] == [PurgeState.UNDONE] * 2
    back = [undo_totals_of(undo) for undo in undos]
    assert sum(total.restored for total in back) == 1_100
    assert sorted(total.still_purged for total in back) == [0, 300]
    assert ids_of(channel, *buckets) == [*old, *recent]
    assert deleted_ids(channel.id, bucket_of(old[0])) == set()


def test_a_purge_waits_for_the_job_that_locked_the_channel_and_names_it(mona: User, channel: Channel) -> None:
    write(channel, old_ids(120))
    purge = confirm(mona, preview(mona, everything(channel)))
    assert lock_channel(channel.id, job="import:7")
    waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert (waiting.state, totals_of(waiting).left) == (PurgeState.WAITING, 120)
    assert waiting.wait_reason == "Waiting behind an import into the channel"
    release_channel(channel.id, job="import:7")
    assert run_purge(purge.id).state == PurgeState.DONE
    assert lock_owner(channel.id) is None


def test_a_range_delete_waits_ten_seconds_after_the_last_timestamp_of_its_bucket(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    issue_stamp(channel.id, bucket_of(ids[0]))
    waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.WAITING
    assert "10 seconds without writes" in waiting.wait_reason
    assert waiting.wait_until is not None
    assert 5 < waiting.wait_until.timestamp() - time.time() <= 10.5
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_worker_whose_claim_was_taken_over_changes_no_state(mona: User, channel: Channel) -> None:
    write(channel, old_ids(150))
    purge = confirm(mona, preview(mona, everything(channel)))
    late = claim(purge)
    Step.objects.filter(purge_id=purge.id).update(token=uuid.uuid4())
    with pytest.raises(Exception, match="step 1 of purge") as lost:
        quarantine_step(late, pace=Pace(1_000))
    assert type(lost.value).__name__ == "StepLost"
    assert Step.objects.get(purge_id=purge.id, ordinal=1).state == StepState.PENDING
