"""A message that is written again after each deletion fails, and its error says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from chatstore.domain.buckets import BucketKey
from chatstore.domain.messages import Message
from chatstore.models.users import User
from chatstore.operations.coordination import clock
from chatstore.store.messages import insert_message
from moderation.domain.states import PurgeState
from moderation.store import deletes
from moderation.store.pace import Pace
from tests.moderation.channels import WILMA, choose, confirm, make_channel, old_ids, preview, run_to_end, write


def test_the_error_of_a_message_that_is_written_again_is_without_its_number(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = make_channel(), old_ids(20)
    write(channel, ids)
    purge = confirm(mona, preview(mona, choose(channel.pk, message_ids=ids[:3])))
    send = deletes.delete_rows_in

    def delete_and_write_again(rows: Iterable[tuple[BucketKey, Sequence[tuple[int, int]]]], *, pace: Pace) -> None:
        send(rows, pace=pace)
        message = Message(channel_id=channel.pk, message_id=ids[0], author_id=WILMA, content="again")
        insert_message(message, stamp_us=clock.stamp_now_us())

    monkeypatch.setattr(deletes, "delete_rows_in", delete_and_write_again)
    purge = run_to_end(purge)
    step = purge.steps.get()
    assert (purge.state, step.deleted, step.failed) == (PurgeState.DONE_WITH_FAILURES, 2, 1)
    assert str(step.error) == "written again after each deletion; if a retry fails too, ask an operator"
