"""Deleted messages are restored with one click: the same ids, every column equal, and nothing else."""

import datetime as dt

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import wall_clock_us
from chatstore.operations.gateway.messages import withdraw_message
from chatstore.store import messages
from chatstore.store.reading import reader
from moderation.domain.selection import MAX_SELECTED_MESSAGES
from moderation.domain.states import PurgeState
from moderation.models import Purge, Step
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.steps.deleted_ids import deleted_ids
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, UndoTotals, offer_undo, request_undo, undo_totals_of
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    by_victor,
    choose,
    confirm,
    everything,
    ids_of,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)
from tests.moderation.stored_sums import store_sums


def undo_now(moderator: User, purge: Purge, part: UndoPart | None = None) -> tuple[Purge, UndoTotals]:
    undo = request_undo(purge.id, moderator=moderator, part=part or UndoPart(), reason="Appeal accepted")
    ended = run_to_end(purge)
    return ended, undo_totals_of(undo)


def counts(total: UndoTotals) -> dict[str, int]:
    return {name: count for name, count in total.as_json().items() if count}


def test_a_dropped_bucket_is_restored_with_every_column_equal(mona: User, channel: Channel) -> None:
    ids = old_ids(300)
    write(channel, ids[1:])
    whole = Message(
        channel_id=channel.id,
        message_id=ids[0],
        author_id=WILMA,
        content="look \x07 <b>",
        type=19,
        edited_at=dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC),
        flags=4,
        pinned=True,
        webhook_id=9,
        author_name="Hook",
        attachments=('{"filename": "a.png"}',),
        embeds=('{"title": "x"}', "{}"),
        stickers=("{}",),
        reactions={"👍": 3, "x:5": 1},
        mentions=(7, 8),
        reference=(channel.id, ids[1]),
    )
    messages.insert_message(whole, stamp_us=messages.posted_stamp(whole))
    before = reader.read_page(channel.id, limit=500).messages
    purge = purge_now(mona, everything(channel))
    assert reader.read_page(channel.id).messages == []
    purge, total = undo_now(mona, purge)
    assert (purge.state, counts(total)) == (PurgeState.UNDONE, {"requested": 300, "restored": 300})
    assert reader.read_page(channel.id, limit=500).messages == before
    assert deleted_ids(channel.id, bucket_of(ids[0])) == set()


def test_rows_and_ranges_are_restored_too(mona: User, channel: Channel) -> None:
    old, recent = old_ids(400), recent_ids(200)
    write(channel, old[:200] + recent)
    write(channel, old[200:], author=WILMA)
    purge = purge_now(mona, by_victor(channel))
    assert totals_of(purge).deleted == 400
    purge, total = undo_now(mona, purge)
    assert counts(total) == {"requested": 400, "restored": 400}
    assert ids_of(channel, bucket_of(old[0]), bucket_of(recent[0])) == old + recent


def test_an_edit_made_during_the_purge_is_applied_to_the_restored_message(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids)
    messages.update_columns(channel.id, ids[4], {"content": "newest words"}, stamp_us=wall_clock_us())
    purge = purge_now(mona, everything(channel))
    undo_now(mona, purge)
    found = messages.read_message(channel.id, ids[4])
    assert found is not None
    assert (found.content, found.author_id) == ("newest words", VICTOR)


def test_messages_withdrawn_by_their_author_are_left_out_and_counted(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    write(channel, ids)
    draft = confirm(mona, preview(mona, everything(channel)))
    withdraw_message(channel.id, ids[10], actor=VICTOR)
    purge = run_to_end(draft)
    purge, total = undo_now(mona, purge)
    assert counts(total) == {"requested": 150, "restored": 149, "withdrawn": 1}
    assert ids_of(channel, bucket_of(ids[0])) == ids[:10] + ids[11:]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_overlap_is_restored_by_the_second_undo(mona: User, channel: Channel, order: tuple[int, int]) -> None:
    ids = old_ids(300)
    write(channel, ids)
    drafts = [
        preview(mona, choose(channel.id, before_id=ids[200])),
        preview(mona, choose(channel.id, after_id=ids[100])),
    ]
    purges = []
    for draft in drafts:
        purges.append(run_to_end(confirm(mona, draft)))
        age_timestamps(channel)
    _, first = undo_now(mona, purges[order[0]])
    assert first.still_purged == 100
    purge, second = undo_now(mona, purges[order[1]])
    assert (second.requested, second.restored, purge.state) == (200, 200, PurgeState.UNDONE)
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_single_author_can_be_restored(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids[:150])
    write(channel, ids[150:], author=WILMA)
    purge = purge_now(mona, everything(channel))
    purge, total = undo_now(mona, purge, UndoPart(author_ids=(WILMA,)))
    assert (purge.state, counts(total)) == (PurgeState.PARTLY_UNDONE, {"requested": 50, "restored": 50})
    assert ids_of(channel, bucket_of(ids[0])) == ids[150:]
    purge, total = undo_now(mona, purge)
    assert (purge.state, counts(total)) == (PurgeState.UNDONE, {"requested": 150, "restored": 150})


def test_only_selected_messages_can_be_restored(mona: User, channel: Channel) -> None:
    ids = old_ids(200)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    undo_now(mona, purge, UndoPart(message_ids=(ids[3], ids[5])))
    assert ids_of(channel, bucket_of(ids[0])) == [ids[3], ids[5]]


def test_as_many_messages_can_be_selected_as_for_a_purge(mona: User, channel: Channel) -> None:
    ids = old_ids(MAX_SELECTED_MESSAGES + 1)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    too_many = UndoPart(message_ids=tuple(ids))
    with pytest.raises(BadInput, match="Select at most 1,000 messages to restore"):
        offer_undo(purge.pk, moderator=mona, part=too_many)
    with pytest.raises(BadInput, match="Select at most 1,000 messages to restore"):
        request_undo(purge.pk, moderator=mona, part=too_many, reason="Appeal accepted")
    undo_now(mona, purge, UndoPart(message_ids=tuple(ids[1:])))
    assert ids_of(channel, bucket_of(ids[0])) == ids[1:]


@pytest.mark.slow
def test_an_undone_purge_can_be_purged_again_and_undone_again(mona: User, channel: Channel) -> None:
    ids = old_ids(150)
    write(channel, ids)
    undo_now(mona, purge_now(mona, everything(channel)))
    again = purge_now(mona, everything(channel))
    assert (totals_of(again).deleted, ids_of(channel, bucket_of(ids[0]))) == (150, [])
    _, total = undo_now(mona, again)
    assert counts(total) == {"requested": 150, "restored": 150}
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_a_partly_cancelled_purge_can_be_undone(mona: User, channel: Channel) -> None:
    early, late = old_ids(150, buckets_ago=5), old_ids(150, buckets_ago=2)
    write(channel, early + late)
    purge = confirm(mona, preview(mona, everything(channel)))
    Step.objects.filter(purge=purge, ordinal=2).update(due_at=dt.datetime(2999, 1, 1, tzinfo=dt.UTC))
    run_to_end(purge)
    cancel_purge(purge.id, moderator=mona)
    purge = run_to_end(purge)
    assert (purge.state, totals_of(purge).deleted) == (PurgeState.CANCELLED, 150)
    purge, total = undo_now(mona, purge)
    assert (purge.state, counts(total)) == (PurgeState.UNDONE, {"requested": 150, "restored": 150})
    assert ids_of(channel, bucket_of(early[0]), bucket_of(late[0])) == early + late


def test_messages_outside_the_purge_cannot_be_restored(mona: User, channel: Channel) -> None:
    ids = old_ids(121)
    write(channel, ids[:120])
    write(channel, ids[120:], author=WILMA)
    purge = purge_now(mona, by_victor(channel))
    elsewhere = make_channel()
    for part in (
        UndoPart(author_ids=(WILMA,)),
        UndoPart(message_ids=(ids[120],)),
        UndoPart(channel_ids=(elsewhere.id,)),
        UndoPart(author_ids=(VICTOR,), channel_ids=(elsewhere.id,)),
    ):
        with pytest.raises(BadInput, match="This purge did not delete any of the requested messages"):
            request_undo(purge.id, moderator=mona, part=part, reason="Appeal accepted")
    purge.refresh_from_db()
    assert purge.state == PurgeState.DONE
    _, total = undo_now(mona, purge, UndoPart(author_ids=(WILMA, VICTOR)))
    assert counts(total) == {"requested": 120, "restored": 120}


def test_an_undo_is_refused_after_thirty_days(mona: User, channel: Channel) -> None:
    write(channel, old_ids(120))
    purge = purge_now(mona, everything(channel))
    long_ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=31)
    Step.objects.filter(purge=purge).update(quarantined_at=long_ago)
    store_sums()
    with pytest.raises(BadInput, match="30 days"):
        request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")


def test_only_moderators_may_undo_and_only_finished_purges(mona: User, otto: User, channel: Channel) -> None:
    write(channel, old_ids(120))
    purge = confirm(mona, preview(mona, everything(channel)))
    with pytest.raises(BadInput, match="cannot be undone"):
        request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    with pytest.raises(Forbidden):
        request_undo(purge.id, moderator=otto, part=UndoPart(), reason="Appeal accepted")
