"""Steps that delete small buckets by range are processed in groups too, and each step is still on its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import pytest
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.models.users import User
from moderation.domain.states import PurgeState, StepKind, StepState
from moderation.models import Purge, Step
from moderation.operations.purging import execution
from moderation.operations.purging.controls import pause_purge, resume_purge
from moderation.operations.purging.rewrite import rewrite_survivors
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import claim_steps
from moderation.operations.steps.totals import totals_of
from moderation.store import deletes
from moderation.store.pace import Pace
from tests.moderation.channels import choose, confirm, ids_of, make_channel, old_ids, preview, run_to_end, write
from tests.moderation.scattered import Scattered, make_scattered

EACH = 120
"""Messages of a step: too many to delete by row."""


@pytest.fixture
def scattered(mona: User) -> Scattered:
    """A purge of twelve steps, each by range."""
    made = make_scattered(mona, each=EACH)
    assert set(made.purge.steps.values_list("kind", "count")) == {(StepKind.RANGES, EACH)}
    return made


def test_they_are_claimed_together(scattered: Scattered) -> None:
    claimed = claim_steps(scattered.purge.pk, token=uuid.uuid4())
    assert [step.ordinal for step in claimed] == list(range(1, 13))


def test_a_bucket_with_many_messages_to_keep_is_processed_alone(mona: User) -> None:
    channel = make_channel()
    for ago in (5, 4, 3):
        ids = old_ids(700 if ago == 4 else 160, buckets_ago=ago)
        write(channel, ids[:EACH], author=71)
        write(channel, ids[EACH:], author=72)
    purge = confirm(mona, preview(mona, choose(channel.pk, author_ids=(71,))))
    groups = [len(claim_steps(purge.pk, token=uuid.uuid4())) for _ in range(2)]
    assert groups == [2, 1]


def test_steps_by_row_and_by_range_are_not_in_one_group(mona: User) -> None:
    channel = make_channel()
    for ago, count in ((6, 20), (5, EACH), (4, 20), (3, EACH)):
        write(channel, old_ids(count, buckets_ago=ago), author=71)
    purge = confirm(mona, preview(mona, choose(channel.pk, author_ids=(71,))))
    claimed = [claim_steps(purge.pk, token=uuid.uuid4()) for _ in range(2)]
    assert [len(group) for group in claimed] == [2, 2]
    assert all(len({step.kind for step in group if isinstance(step, Step)}) == 1 for group in claimed)


def test_a_group_whose_deletes_failed_half_way_is_completed(
    scattered: Scattered, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, calls = deletes.delete_ranges, 0

    def fail_once(channel_id: int, bucket: int, ranges: Sequence[tuple[int, int]], *, stamp: int, pace: Pace) -> None:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise StoreUnavailable("a replica is down")
        send(channel_id, bucket, ranges, stamp=stamp, pace=pace)

    monkeypatch.setattr(deletes, "delete_ranges", fail_once)
    waiting = run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert totals_of(waiting).deleted <= scattered.gone
    run_to_end(scattered.purge)
    scattered.assert_purged()


def test_a_pause_while_kept_messages_are_rewritten_is_exact(
    mona: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the five ranges of a bucket only one is within the budget: the four messages inside it are rewritten.
    settings.PURGE_TOMBSTONE_BUDGET = 3
    scattered = make_scattered(mona, each=EACH)
    rewritten = 0

    def pause_at_the_third(step: Step, pace: Pace, *, check: Callable[[], None], **named: object) -> None:
        nonlocal rewritten
        rewritten += 1
        if rewritten == 3:
            pause_purge(scattered.purge.pk, moderator=mona)
        rewrite_survivors(step, pace, check=check, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "rewrite_survivors", pause_at_the_third)
    monkeypatch.setattr("moderation.operations.steps.claiming.STATE_CHECK_SECONDS", 0)
    paused = run_purge(scattered.purge.pk)
    monkeypatch.undo()
    total = totals_of(paused)
    assert paused.state == PurgeState.PAUSED
    # No delete of the group was sent, so all of it starts over.
    assert total.deleted == scattered.gone == 0
    assert set(scattered.purge.steps.values_list("state", flat=True)) == {StepState.PENDING}
    resume_purge(paused.pk, moderator=mona)
    purge = run_to_end(Purge.objects.get(pk=paused.pk))
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.DONE, scattered.messages)
    for channel, kept in scattered.kept.items():
        assert ids_of(channel, *scattered.buckets(channel)) == kept
