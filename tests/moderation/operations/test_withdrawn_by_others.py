"""Only the author can withdraw a purged message: an undo ignores claims by other users."""

import uuid

import pytest
from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import cassandra
from moderation.domain.outcomes import Comeback
from moderation.models import Purge
from moderation.operations.lookup.message_history import Story, kept_copy, story_of
from moderation.operations.preview.manifest import list_manifest
from moderation.operations.steps.claiming import claim_step
from moderation.operations.undo.requests import UndoPart, UndoSum, ask_undo, sum_of_undo
from moderation.operations.undo.restore import restore_step
from moderation.store.pace import Pace
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    choose,
    everything,
    ids_of,
    let_stamps_age,
    old_ids,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)

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


def take_back(moderator: User, purge: Purge) -> UndoSum:
    undo = ask_undo(purge.id, moderator=moderator, part=UndoPart())
    run_to_end(purge)
    return sum_of_undo(undo)


def counts(total: UndoSum) -> dict[str, int]:
    return {name: count for name, count in total.as_json().items() if count}


def living(channel: Channel, ids: list[int]) -> list[int]:
    return ids_of(channel, *{bucket_of(message_id) for message_id in ids})


def test_an_undo_brings_back_what_others_withdrew_and_leaves_out_what_its_author_did(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    claim_both(channel, ids)
    assert counts(take_back(mona, purge)) == {"asked": 120, "restored": 119, "withdrawn": 1}
    assert living(channel, ids) == [i for i in ids if i != ids[OWN]]


def test_its_author_is_known_from_whichever_purge_keeps_it(mona: User, channel: Channel, ids: list[int]) -> None:
    first = purge_now(mona, choose(channel.id, message_ids=ids[:10]))
    claim_both(channel, ids)
    let_stamps_age(channel)
    second = purge_now(mona, choose(channel.id, message_ids=ids[10:]))
    assert counts(take_back(mona, second)) == {"asked": 110, "restored": 110}
    assert counts(take_back(mona, first)) == {"asked": 10, "restored": 9, "withdrawn": 1}


def test_a_withdrawal_of_before_it_was_noted_who_did_counts_as_it_did(
    mona: User, channel: Channel, ids: list[int]
) -> None:
    purge = purge_now(mona, everything(channel))
    cql = "INSERT INTO withdrawn (channel_id, bucket, message_id) VALUES (?, ?, ?)"
    cassandra.execute(cql, (channel.id, bucket_of(ids[OTHERS]), ids[OTHERS]))
    withdraw_message(channel.id, ids[OTHERS], actor=WILMA)
    assert counts(take_back(mona, purge)) == {"asked": 120, "restored": 119, "withdrawn": 1}


def test_what_others_withdraw_while_it_comes_back_stays_also_after_a_crash(
    mona: User, channel: Channel, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = purge_now(mona, everything(channel))
    undo = ask_undo(purge.id, moderator=mona, part=UndoPart())
    step = claim_step(purge.id, token=uuid.uuid4())
    assert step is not None

    class CrashError(Exception):
        pass

    def crash(*_: object, **__: object) -> None:
        raise CrashError

    with monkeypatch.context() as patched:
        # Like a worker that is killed after the decision and before any write.
        patched.setattr("moderation.operations.undo.restore.write_rows", crash)
        with pytest.raises(CrashError):
            restore_step(step, pace=Pace(10_000))
    claim_both(channel, ids)
    step.refresh_from_db()
    restore_step(step, pace=Pace(10_000))
    run_to_end(purge)
    assert counts(sum_of_undo(undo)) == {"asked": 120, "restored": 119, "withdrawn": 1}
    assert living(channel, ids) == [i for i in ids if i != ids[OWN]]


def story(user: User, channel: Channel, message_id: int) -> tuple[Story, bool]:
    """Return the history of the message, and whether its text can be read."""
    told = story_of(user, channel.id, message_id)
    return told, not told.is_withdrawn and kept_copy(user, told) is not None


def test_the_pages_agree_with_the_undo(mona: User, channel: Channel, ids: list[int]) -> None:
    purge = purge_now(mona, everything(channel))
    claim_both(channel, ids)
    entries = {entry.message_id: entry for entry in list_manifest(mona, purge, limit=200).entries}
    assert [i for i, entry in entries.items() if entry.is_withdrawn or entry.message is None] == [ids[OWN]]
    told, is_readable = story(mona, channel, ids[OTHERS])
    assert (told.is_withdrawn, is_readable, len(told.may_undo)) == (False, True, 1)
    told, is_readable = story(mona, channel, ids[OWN])
    assert (told.is_withdrawn, is_readable, told.may_undo) == (True, False, [])
    take_back(mona, purge)
    comebacks = [story(mona, channel, ids[n])[0].parts[0].returns[0].comeback for n in (OTHERS, OWN)]
    assert comebacks == [Comeback.RESTORED, Comeback.WITHDRAWN]
