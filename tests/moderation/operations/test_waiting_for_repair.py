"""A purge waits while the repair of `messages` is overdue, shows it, and continues after a repair."""

import datetime as dt

import pytest
from pytest_django import Settings

from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.repair_status import repair_clock
from moderation.domain.states import PurgeState
from moderation.models import Step
from moderation.operations.purging.wait_reasons import wait_of
from moderation.operations.purging.worker import run_purge
from tests.chatstore.channels import delete_old_delete_log
from tests.moderation.channels import (
    buckets_of,
    by_victor,
    confirm,
    ids_of,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)


def test_a_purge_waits_for_the_repair_and_continues_after_it(
    mona: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PURGES_WAIT_FOR_REPAIR = True
    delete_old_delete_log()
    channel = make_channel()
    ids = old_ids(6)
    write(channel, ids)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    note_deletes(channel.id, buckets_of(ids)[0] - 1, 1)

    # Only the repair clock is three days ahead: no delete is covered, and all are older than gc_grace.
    monkeypatch.setattr(repair_clock, "postgres_now", lambda: postgres_now() + dt.timedelta(days=3))
    waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.WAITING
    wait = wait_of(None, waiting)
    assert wait is not None
    assert wait.reason.startswith("Waiting: The last repair of messages is older than gc_grace")
    assert ids_of(channel, *buckets_of(ids)) == ids

    monkeypatch.undo()
    settings.PURGES_WAIT_FOR_REPAIR = True
    Step.objects.filter(purge=purge).update(due_at=None)
    assert run_to_end(purge).state == PurgeState.DONE
    assert ids_of(channel, *buckets_of(ids)) == []
