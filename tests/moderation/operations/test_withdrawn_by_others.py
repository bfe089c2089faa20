"""Only the author can withdraw a purged message: an undo ignores claims by other users."""

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import cassandra
from moderation.domain.outcomes import RestoreOutcome
from moderation.models import Purge
from moderation.operations.lookup.message_history import MessageHistory, history_of_message, quarantined_copy
from moderation.operations.preview.manifest import list_manifest
from moderation.operations.undo.requests import UndoPart, UndoTotals, request_undo, undo_totals_of
from moderation.store.pace import Pace
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    choose,
    claim_undo,
    everything,
    ids_of,
    old_ids,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)
from tests.moderation.steps import restore_step

OTHERS, OWN = 3, 5
"""Victor's messages that Wilma claims, and the one that Victor withdraws."""


@pytest.fixture(params=[old_ids, recent_ids])
def ids(request: pytest.FixtureRequest, channel: Channel) -> list[int]:
    """Write Victor's messages, which are deleted by range or by row."""
    written: list[int] = request.param(120)
    write(channel, written)
    return written


def claim_both(channel: Channel, ids: list[int]) -> None:
    """Let Wilma claim two messages and Victor, the real author, one of them."""
    for actor, message_id in ((WILMA, ids[OTHERS]), (WILMA, ids[OWN]), (VICTOR, ids[OWN])):
        assert not withdraw_message(channel.id, message_id, actor=actor)


def undo_now(moderator: User, purge: Purge) -> UndoTotals:
    undo = request_undo(purge.id, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    return undo_totals_of(undo)


def counts(total: UndoTotals) -> dict[str, int]:
    return {name: count for name, count in total.as_json().items() if count}


def living(channel: Channel, ids: list[int]) -> list[int]:
    return ids_of(channel, *{bucket_of(message_id) for message_id in ids})


def test_an_undo_restores_messages_claimed_by_others_and_omits_those_withdrawn_by_their_author(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    claim_both(channel, ids)
    assert counts(undo_now(mona, purge)) == {"requested": 120, "restored": 119, "withdrawn": 1}
    assert living(channel, ids) == [i for i in ids if i != ids[OWN]]


def test_the_author_is_known_from_any_purge_that_keeps_a_copy(mona: User, channel: Channel, ids: list[int]) -> None:
    first = purge_now(mona, choose(channel.id, message_ids=ids[:10]))
    claim_both(channel, ids)
    age_timestamps(channel)
    second = purge_now(mona, choose(channel.id, message_ids=ids[10:]))
    assert counts(undo_now(mona, second)) == {"requested": 110, "restored": 110}
    assert counts(undo_now(mona, first)) == {"requested": 10, "restored": 9, "withdrawn": 1}


def test_a_withdrawal_without_a_recorded_claimant_is_still_honoured(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    cql = "INSERT INTO withdrawn (channel_id, bucket, message_id) VALUES (?, ?, ?)"
    cassandra.execute(cql, (channel.id, bucket_of(ids[OTHERS]), ids[OTHERS]))
    withdraw_message(channel.id, ids[OTHERS], actor=WILMA)
    assert counts(undo_now(mona, purge)) == {"requested": 120, "restored": 119, "withdrawn": 1}


def test_a_message_claimed_by_others_during_a_restore_is_kept_even_after_a_crash(
    mona: User, channel: Channel, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = purge_now(mona, everything(channel))
    undo = request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    step = claim_undo(purge)

    class CrashError(Exception):
        pass

    def crash(*_: object, **__: object) -> None:
        raise CrashError

    with monkeypatch.context() as patched:
        # Like a worker that is killed after the decision and before any write.
        patched.setattr("moderation.operations.undo.restore.write_rows_in", crash)
        with pytest.raises(CrashError):
            restore_step(step, pace=Pace(10_000))
    claim_both(channel, ids)
    step.refresh_from_db()
    restore_step(step, pace=Pace(10_000))
    run_to_end(purge)
    assert counts(undo_totals_of(undo)) == {"requested": 120, "restored": 119, "withdrawn": 1}
    assert living(channel, ids) == [i for i in ids if i != ids[OWN]]


def history(user: User, channel: Channel, message_id: int) -> tuple[MessageHistory, bool]:
    """Return the history of the message, and whether its text can be read."""
    found = history_of_message(user, channel.id, message_id)
    return found, not found.is_withdrawn and quarantined_copy(user, found) is not None


def test_the_pages_agree_with_the_undo(mona: User, channel: Channel, ids: list[int]) -> None:
    purge = purge_now(mona, everything(channel))
    claim_both(channel, ids)
    entries = {entry.message_id: entry for entry in list_manifest(mona, purge, limit=200).entries}
    assert [i for i, entry in entries.items() if entry.is_withdrawn or entry.message is None] == [ids[OWN]]
    found, is_readable = history(mona, channel, ids[OTHERS])
    assert (found.is_withdrawn, is_readable, len(found.undoable_parts)) == (False, True, 1)
    found, is_readable = history(mona, channel, ids[OWN])
    assert (found.is_withdrawn, is_readable, found.undoable_parts) == (True, False, [])
    undo_now(mona, purge)
    outcomes = [history(mona, channel, ids[n])[0].parts[0].undo_results[0].outcome for n in (OTHERS, OWN)]
    assert outcomes == [RestoreOutcome.RESTORED, RestoreOutcome.WITHDRAWN]
