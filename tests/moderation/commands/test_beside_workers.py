"""A command that shares its purge with workers reports the result of the whole purge."""

import datetime as dt
import uuid

from django.contrib.auth.models import User

from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from moderation.operations.purging.worker import run_beside_others, run_purge
from moderation.operations.steps.totals import sum_of
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.rooms import confirm, everything, make_channel, old_ids, preview, write


def purge_of_two_buckets(mona: User) -> Purge:
    channel = make_channel()
    for ago in (3, 4):
        write(channel, old_ids(200, buckets_ago=ago))
    return confirm(mona, preview(mona, everything(channel)))


def give_one_to_another(purge: Purge) -> None:
    """Give the purge's last step to another worker that dies; its lease ends in three seconds."""
    last = purge.steps.order_by("-ordinal")[0]
    lease_until = postgres_now() + dt.timedelta(seconds=3)
    assert purge.steps.filter(ordinal=last.ordinal, state=StepState.PENDING).update(
        token=uuid.uuid4(), lease_until=lease_until
    )


def test_a_purge_is_told_of_when_the_last_of_it_is_gone(mona: User) -> None:
    purge = purge_of_two_buckets(mona)
    give_one_to_another(purge)
    assert run_purge(purge.pk).state == PurgeState.RUNNING
    ended = run_beside_others(purge.pk)
    assert (ended.state, sum_of(ended).left) == (PurgeState.DONE, 0)


def test_an_undo_is_told_of_when_the_last_of_it_is_back(mona: User) -> None:
    purge = run_purge(purge_of_two_buckets(mona).pk, patience_seconds=60)
    ask_undo(purge.pk, moderator=mona, part=UndoPart())
    give_one_to_another(purge)
    assert run_purge(purge.pk).state == PurgeState.UNDOING
    assert run_beside_others(purge.pk).state == PurgeState.UNDONE
