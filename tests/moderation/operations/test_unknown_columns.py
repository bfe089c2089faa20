"""A purge refuses messages with a column it could not restore, as during a rolling deploy."""

import pytest
from django.contrib.auth.models import User

from moderation.domain.states import PurgeState, StepState
from moderation.operations.purging import quarantine
from moderation.operations.purging.controls import retry_purge
from moderation.operations.steps.totals import sum_of
from tests.moderation.rooms import buckets_of, everything, ids_of, make_channel, old_ids, purge_now, run_to_end, write


def test_a_column_that_it_does_not_copy_stops_a_purge_until_it_does(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = make_channel(), old_ids(150)
    write(channel, ids)
    with monkeypatch.context() as older_version:
        older_version.setattr(quarantine, "KNOWN_COLUMNS", quarantine.KNOWN_COLUMNS - {"stickers"})
        purge = purge_now(mona, everything(channel))
    step = purge.steps.get()
    assert (purge.state, step.state, sum_of(purge).failed) == (PurgeState.DONE_WITH_FAILURES, StepState.FAILED, 150)
    assert step.error == "the messages table has columns that this version does not copy: stickers"
    assert ids_of(channel, *buckets_of(ids)) == ids
    retry_purge(purge.pk, moderator=mona)
    assert run_to_end(purge).state == PurgeState.DONE
    assert ids_of(channel, *buckets_of(ids)) == []
