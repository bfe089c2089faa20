"""A purge refuses messages with a column it could not restore, as during a rolling deploy."""

import pytest

from chatstore.models.users import User
from moderation.domain.states import PurgeState, StepState
from moderation.operations.purging import quarantine
from moderation.operations.purging.controls import retry_purge
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import (
    buckets_of,
    everything,
    ids_of,
    make_channel,
    old_ids,
    purge_now,
    run_to_end,
    write,
)


def test_an_unknown_column_stops_a_purge_until_it_is_copied(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, ids = make_channel(), old_ids(150)
    write(channel, ids)
    with monkeypatch.context() as older_version:
        older_version.setattr(quarantine, "KNOWN_COLUMNS", quarantine.KNOWN_COLUMNS - {"stickers"})
        purge = purge_now(mona, everything(channel))
    step = purge.steps.get()
    assert (purge.state, step.state, totals_of(purge).failed) == (PurgeState.DONE_WITH_FAILURES, StepState.FAILED, 150)
    assert step.error == "the messages table has columns that this version does not copy: stickers"
    assert ids_of(channel, *buckets_of(ids)) == ids
    retry_purge(purge.pk, moderator=mona)
    assert run_to_end(purge).state == PurgeState.DONE
    assert ids_of(channel, *buckets_of(ids)) == []
