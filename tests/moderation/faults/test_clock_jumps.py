"""Postgres's clock jumps during a purge or an undo: it waits, and loses nothing once the clock is correct."""

from collections.abc import Mapping

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import check_clock
from chatstore.operations.gateway import messages as gateway
from chatstore.store import messages
from chatstore.store.reading import reader
from moderation.domain.states import PurgeState
from moderation.models import Step, UndoStep
from moderation.operations.purging import worker
from moderation.operations.purging.quarantine import QuarantinedStep
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.clock_jumps import postgres_off
from tests.moderation.channels import (
    WILMA,
    by_victor,
    confirm,
    everything,
    ids_of,
    make_channel,
    old_ids,
    preview,
    purge_now,
    run_to_end,
    write,
)


@pytest.fixture
def channel() -> Channel:
    check_clock()
    return make_channel()


def test_an_edit_of_a_survivor_is_not_lost_when_postgres_is_ahead(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = old_ids(1_200)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, by_victor(channel)))

    def edit_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        gateway.edit_message(channel.id, ids[601], actor=WILMA, content="edited")
        return stamp_steps(quarantined)

    monkeypatch.setattr(worker, "stamp_steps", edit_and_stamp)
    with postgres_off(20):
        waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert (waiting.state, totals_of(waiting).left) == (PurgeState.WAITING, 600)
    assert "behind Postgres's" in waiting.wait_reason
    Step.objects.filter(purge=purge).update(due_at=None)
    assert run_to_end(purge).state == PurgeState.DONE
    found = messages.read_message(channel.id, ids[601])
    assert found is not None
    assert found.content == "edited"


def test_restored_messages_are_visible_when_the_clock_jumps_between_purge_and_undo(
    mona: User, channel: Channel
) -> None:
    ids = old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))
    with postgres_off(40):
        assert run_purge(purge.id, idle_timeout_seconds=0).state == PurgeState.WAITING
    Step.objects.filter(purge=purge).update(due_at=None)
    run_to_end(purge)
    undo = request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.UNDONE
    assert undo_totals_of(undo).restored == 300
    assert len(reader.read_page(channel.id, limit=500).messages) == 300


def test_an_undo_waits_while_postgres_is_ahead(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    undo = request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    with postgres_off(40):
        waiting = run_purge(purge.id, idle_timeout_seconds=0)
    assert waiting.state == PurgeState.UNDOING
    assert ids_of(channel, bucket_of(ids[0])) == []
    UndoStep.objects.filter(purge=purge).update(due_at=None)
    assert run_to_end(purge).state == PurgeState.UNDONE
    assert undo_totals_of(undo).restored == 300
    assert ids_of(channel, bucket_of(ids[0])) == ids
