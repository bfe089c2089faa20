"""An edit that arrives during the purge of its message is quarantined too, and an undo restores it."""

from collections.abc import Mapping

import pytest

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.store import messages
from moderation.domain.states import PurgeState
from moderation.models import Step
from moderation.operations.purging import worker
from moderation.operations.purging.quarantine import QuarantinedStep
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from tests.moderation.channels import confirm, everything, ids_of, make_channel, old_ids, preview, run_to_end, write


@pytest.mark.parametrize("ahead_seconds", [0, 4])
def test_the_late_edit_is_restored_by_the_undo(mona: User, monkeypatch: pytest.MonkeyPatch, ahead_seconds: int) -> None:
    """Edits from a gateway whose clock is `ahead_seconds` ahead."""
    channel: Channel = make_channel()
    ids = old_ids(300)
    write(channel, ids)
    purge = confirm(mona, preview(mona, everything(channel)))

    def edit_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        stamp_us = wall_clock_us() + ahead_seconds * 1_000_000
        messages.update_columns(channel.id, ids[7], {"content": "edited"}, stamp_us=stamp_us)
        return stamp_steps(quarantined)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(worker, "stamp_steps", edit_and_stamp)
        assert run_to_end(purge).state == PurgeState.DONE
    assert totals_of(purge).deleted == 300
    bucket = Step.objects.get(purge=purge).bucket
    assert ids_of(channel, bucket) == []

    undo = request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    assert run_to_end(purge).state == PurgeState.UNDONE
    assert undo_totals_of(undo).restored == 300
    assert ids_of(channel, bucket) == ids
    found = messages.read_message(channel.id, ids[7])
    assert found is not None
    assert found.content == "edited"
