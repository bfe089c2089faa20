"""A command that shares its purge with workers reports the result of the whole purge."""

import datetime as dt
import uuid

from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.models.steps import StepQuerySet, UndoStepQuerySet
from moderation.operations.purging.worker import run_purge, run_with_workers
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import confirm, everything, make_channel, old_ids, preview, write


def purge_of_two_buckets(mona: User) -> Purge:
    channel = make_channel()
    for ago in (3, 4):
        write(channel, old_ids(200, buckets_ago=ago))
    return confirm(mona, preview(mona, everything(channel)))


def give_step_to_another_worker(steps: StepQuerySet | UndoStepQuerySet) -> None:
    """Give the last of the steps to another worker that dies; its lease ends in three seconds."""
    last = steps.order_by("-ordinal")[0]
    lease_until = postgres_now() + dt.timedelta(seconds=3)
    assert steps.filter(ordinal=last.ordinal, state="pending").update(token=uuid.uuid4(), lease_until=lease_until)


def test_a_purge_is_reported_when_its_last_step_is_done(mona: User) -> None:
    purge = purge_of_two_buckets(mona)
    give_step_to_another_worker(purge.steps.all())
    assert run_purge(purge.pk).state == PurgeState.RUNNING
    ended = run_with_workers(purge.pk)
    assert (ended.state, totals_of(ended).left) == (PurgeState.DONE, 0)


def test_an_undo_is_reported_when_its_last_step_is_done(mona: User) -> None:
    purge = run_purge(purge_of_two_buckets(mona).pk, idle_timeout_seconds=60)
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    give_step_to_another_worker(undo.steps.all())
    assert run_purge(purge.pk).state == PurgeState.UNDOING
    assert run_with_workers(purge.pk).state == PurgeState.UNDONE
