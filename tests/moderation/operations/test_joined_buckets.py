"""One statement reads or deletes from several small buckets, and each bucket gets what is its own, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from chatstore.domain.buckets import BucketKey, bucket_of
from chatstore.domain.errors import TooManyTombstones
from chatstore.domain.messages import MESSAGE_ID, Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.store import cassandra, messages, scans
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Hold, Purge, Step
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.purging import worker
from moderation.operations.purging.quarantine import QuarantinedStep
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.steps.shared_copies import copies_of
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from moderation.store import quarantine
from moderation.store.quarantine import QuarantineKey, quarantine_attempts, quarantine_attempts_in, quarantined_rows
from tests.chatstore.channels import delete_rows, write_authorless
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    confirm,
    ids_of,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)
from tests.moderation.faults.test_guards import losing_one
from tests.moderation.scattered import make_scattered

EDIT = "UPDATE messages USING TIMESTAMP ? SET content = ? WHERE channel_id = ? AND bucket = ? AND message_id = ?"
SELECT_CONTENT = "SELECT content FROM messages WHERE channel_id = ? AND bucket = ? AND message_id = ?"

IDS = [message_id for ago in (4, 3) for message_id in old_ids(20, buckets_ago=ago)]
EVEN, ODD = IDS[::2], IDS[1::2]


@dataclass(frozen=True, slots=True)
class SameIds:
    """Channels whose messages have the same ids in two buckets: of Victor and Wilma in turns, of Wilma and Victor in
    turns, and only of Victor.
    """

    turns: Channel
    other_turns: Channel
    only_victors: Channel

    def preview_of(self, moderator: User, author: int) -> Purge:
        ids = tuple(channel.pk for channel in (self.turns, self.other_turns, self.only_victors))
        return preview(moderator, Selection(channel_ids=ids, where=Author((author,))))

    def live(self) -> tuple[list[int], list[int], list[int]]:
        """Return the live ids of each channel."""
        return live_in(self.turns), live_in(self.other_turns), live_in(self.only_victors)

    def copied(self, purge: Purge) -> tuple[list[int], list[int], list[int]]:
        """Return the ids of each channel of which the purge has a copy."""
        return copied_in(purge, self.turns), copied_in(purge, self.other_turns), copied_in(purge, self.only_victors)


def live_in(channel: Channel) -> list[int]:
    return ids_of(channel, *buckets())


def copied_in(purge: Purge, channel: Channel) -> list[int]:
    keys = [
        QuarantineKey(purge.pk, channel.pk, bucket, attempt)
        for bucket in buckets()
        for attempt in quarantine_attempts(purge.pk, channel.pk, bucket)
    ]
    return sorted(row[MESSAGE_ID] for key in keys for rows in quarantined_rows(key) for row in rows)


def buckets() -> list[int]:
    return sorted({bucket_of(message_id) for message_id in IDS})


@pytest.fixture
def same_ids() -> SameIds:
    channels = SameIds(make_channel(), make_channel(), make_channel())
    write(channels.turns, EVEN)
    write(channels.turns, ODD, author=WILMA)
    write(channels.other_turns, EVEN, author=WILMA)
    write(channels.other_turns, ODD)
    write(channels.only_victors, IDS)
    return channels


def test_channels_with_the_same_ids_lose_and_regain_only_their_own_messages(mona: User, same_ids: SameIds) -> None:
    victors = run_to_end(confirm(mona, same_ids.preview_of(mona, VICTOR)))
    assert same_ids.live() == (ODD, EVEN, [])
    assert same_ids.copied(victors) == (EVEN, ODD, IDS)
    assert (totals_of(victors).deleted, totals_of(victors).already_gone) == (80, 0)
    wilmas = run_to_end(confirm(mona, same_ids.preview_of(mona, WILMA)))
    assert same_ids.live() == ([], [], [])
    assert same_ids.copied(wilmas) == (ODD, EVEN, [])
    assert (totals_of(wilmas).deleted, totals_of(wilmas).already_gone) == (40, 0)
    for purge, restored, live in ((wilmas, 40, (ODD, EVEN, [])), (victors, 80, (IDS, IDS, IDS))):
        undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
        run_to_end(purge)
        assert undo_totals_of(undo).restored == restored
        assert same_ids.live() == live


def test_an_undo_restores_a_message_whose_id_is_live_in_another_channel(mona: User, same_ids: SameIds) -> None:
    purge = run_to_end(confirm(mona, same_ids.preview_of(mona, VICTOR)))
    for message_id in EVEN[:5]:
        again = Message(channel_id=same_ids.only_victors.pk, message_id=message_id, author_id=VICTOR, content="again")
        messages.insert_message(again, stamp_us=stamp_now_us())
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    totals = undo_totals_of(undo)
    assert (totals.restored, totals.already_live, totals.failed) == (75, 5, 0)
    assert same_ids.live() == (IDS, IDS, IDS)


def test_a_hold_placed_after_the_read_keeps_one_message_of_the_channels_with_its_id(
    mona: User, same_ids: SameIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = EVEN[3]
    placed: list[Hold] = []

    def place_and_stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        if not placed:
            request = HoldRequest(message=f"https://chat.example/channels/{same_ids.turns.pk}/{held}")
            placed.append(place_hold(request, reason="court order", actor=mona))
        return stamp_steps(quarantined)

    monkeypatch.setattr(worker, "stamp_steps", place_and_stamp)
    purge = run_to_end(confirm(mona, same_ids.preview_of(mona, VICTOR)))
    totals = totals_of(purge)
    assert (purge.state, totals.held, totals.deleted) == (PurgeState.DONE_WITH_FAILURES, 1, 79)
    assert same_ids.live() == (sorted([*ODD, held]), EVEN, [])


def test_what_changed_since_the_preview_is_assigned_to_its_own_bucket(mona: User) -> None:
    scattered = make_scattered(mona)
    channel, ids = next(iter(scattered.deleted.items()))
    emptied, edited_later, future = ids[:5], ids[5], ids[10]
    hour_us = 3_600_000_000
    delete_rows(channel.pk, [*emptied, *(i for i in scattered.kept[channel] if bucket_of(i) == bucket_of(ids[0]))])
    for message_id, stamp in ((edited_later, stamp_now_us()), (future, stamp_now_us() + hour_us)):
        cassandra.execute(EDIT, (stamp, "edited", channel.pk, bucket_of(message_id), message_id))
    run_to_end(scattered.purge)
    totals = totals_of(scattered.purge)
    assert (totals.deleted, totals.already_gone, totals.failed) == (scattered.messages - 5, 5, 0)
    kept = [message_id for message_id in scattered.kept[channel] if bucket_of(message_id) != bucket_of(ids[0])]
    assert ids_of(channel, *scattered.buckets(channel)) == kept
    undo = request_undo(scattered.purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(scattered.purge)
    undone = undo_totals_of(undo)
    assert (undone.restored, undone.no_copy, undone.failed) == (scattered.messages - 5, 5, 0)
    assert ids_of(channel, *scattered.buckets(channel)) == sorted([*kept, *ids[5:]])
    for message_id in (edited_later, future):
        found = cassandra.execute(SELECT_CONTENT, (channel.pk, bucket_of(message_id), message_id))
        assert found == [("edited",)]


def test_a_verification_of_several_buckets_takes_several_pages(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "SMALL_FETCH", 3)
    scattered = make_scattered(mona, channels=2, buckets=6)
    run_to_end(scattered.purge)
    scattered.assert_purged()
    again = preview(mona, Selection(channel_ids=tuple(one.pk for one in scattered.kept), where=Author((WILMA,))))
    assert again.manifest == sum(map(len, scattered.kept.values()))
    scattered.undo(mona)


def test_buckets_whose_joined_read_meets_too_many_tombstones_are_read_alone(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = scans.read_ids_in
    failures: list[int] = []

    def fail(keys: Collection[BucketKey]) -> Iterator[tuple[BucketKey, list[Any]]]:
        if len(keys) > 1:
            failures.append(len(keys))
            raise TooManyTombstones("a read was aborted")
        return read(keys)

    scattered = make_scattered(mona)
    monkeypatch.setattr(scans, "read_ids_in", fail)
    run_to_end(scattered.purge)
    assert failures == [12]
    scattered.assert_purged()


def read_alone(key: BucketKey, ids: Collection[int]) -> dict[int, tuple[Any, ...]]:
    rows = scans.read_rows_with_writetime_in({key: sorted(ids)})
    return {row[MESSAGE_ID]: row for _, page in rows for row in page}


@pytest.mark.parametrize("by_channel", [True, False])
def test_a_read_of_several_buckets_finds_what_a_read_of_each_finds(by_channel: bool) -> None:
    """Shapes: rows of very different sizes, rows without an author, no rows, few of the ids, more ids than a statement
    takes, one bucket, and many.
    """
    channels = [make_channel() for _ in range(2 if by_channel else 14)]
    wanted: dict[BucketKey, Sequence[int]] = {}
    for number, channel in enumerate(channels):
        for ago in range(3, 17 if by_channel else 5):
            ids = old_ids(130 if (number, ago) == (1, 4) else 1 + ago % 7 + number, buckets_ago=ago)
            key = (channel.pk, bucket_of(ids[0]))
            wanted[key] = ids
            if (number + ago) % 5 == 0:
                continue
            written = ids[number % 2 :: 2] if ago % 2 else ids
            write(channel, written[1:], content="x" * (1 if ago % 3 else 4_000))
            write_authorless(channel.pk, written[:1])
    joined: dict[BucketKey, dict[int, tuple[Any, ...]]] = {key: {} for key in wanted}
    for key, rows in scans.read_rows_with_writetime_in(wanted):
        joined[key].update({row[MESSAGE_ID]: row for row in rows})
    assert joined == {key: read_alone(key, ids) for key, ids in wanted.items()}
    assert any(joined.values())
    author = messages.COLUMNS.index("author_id")
    assert scans.read_live_ids_in(wanted) == {
        key: {message_id for message_id, row in rows.items() if row[author] is not None} for key, rows in joined.items()
    }
    whole: dict[BucketKey, list[int]] = {}
    for key, page in scans.read_ids_in(wanted):
        whole.setdefault(key, []).extend(message_id for message_id, _ in page)
    assert whole == {key: sorted(rows, reverse=True) for key, rows in joined.items() if rows}


def test_nothing_is_deleted_while_a_copy_of_one_of_several_buckets_is_missing(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered = make_scattered(mona)
    send = losing_one(cassandra.execute_batches, of="INSERT INTO quarantine")
    monkeypatch.setattr(cassandra, "execute_batches", send)
    waiting = worker.run_purge(scattered.purge.pk, idle_timeout_seconds=0)
    assert (waiting.state, totals_of(waiting).deleted) == (PurgeState.WAITING, 0)
    assert "differ from what was written; nothing was deleted" in str(waiting.wait_reason)
    monkeypatch.undo()
    Step.objects.filter(purge=waiting).update(due_at=None)
    run_to_end(waiting)
    scattered.assert_purged()


def test_copies_of_some_buckets_that_expire_before_they_are_read_are_replaced_by_older_ones(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered = make_scattered(mona)
    run_to_end(scattered.purge)

    def with_expired_ones(places: Sequence[tuple[int, int, int]]) -> Iterator[dict[int, int]]:
        for number, attempts in enumerate(quarantine_attempts_in(places)):
            yield attempts if number % 2 else {**attempts, max(attempts) + 1: 1}

    monkeypatch.setattr("moderation.operations.steps.shared_copies.quarantine_attempts_in", with_expired_ones)
    scattered.undo(mona)


def test_copies_beyond_the_wanted_ones_are_not_read(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "ROWS_PER_CHUNK", 5)
    monkeypatch.setattr(quarantine, "CHUNKS_PER_PAGE", 1)
    ids = old_ids(200)
    write(channel, ids)
    purge = run_to_end(confirm(mona, preview(mona, by_victor(channel))))
    (bucket,) = {bucket_of(message_id) for message_id in ids}
    (attempts,) = quarantine_attempts_in([(channel.pk, bucket, purge.pk)])
    assert list(attempts.values()) == [40]
    taken: list[int] = []
    take_page = cassandra.Pending._take_page

    def count_pages(pending: cassandra.Pending) -> list[cassandra.Row]:
        rows = take_page(pending)
        taken.append(len(rows))
        return rows

    monkeypatch.setattr(cassandra.Pending, "_take_page", count_pages)
    first = next(iter(quarantined_rows(QuarantineKey(purge.pk, channel.pk, bucket, *attempts))))
    taken.clear()
    wanted = [row[MESSAGE_ID] for row in first][:1]
    assert [row[MESSAGE_ID] for rows in copies_of(channel.pk, bucket, wanted) for row in rows] == wanted
    # One page of chunks, without the bodies, and one with the body.
    assert len(taken) <= 3
