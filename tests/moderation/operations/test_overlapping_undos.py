"""Overlapping purges can each be undone for their own thirty days, whichever quarantine expires first."""

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.undo.requests import UndoPart, request_undo, undo_totals_of
from moderation.store.quarantine import erase_quarantined
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    by_victor,
    confirm,
    everything,
    ids_of,
    old_ids,
    preview,
    run_to_end,
    write,
)


def undo(moderator: User, purge: Purge) -> dict[str, int]:
    requested = request_undo(purge.pk, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    return {name: count for name, count in undo_totals_of(requested).as_json().items() if count}


def expire_copies(purge: Purge, channel: Channel, ids: list[int]) -> None:
    """Expire all copies that the purge itself keeps."""
    erase_quarantined(purge.pk, channel.pk, [bucket_of(ids[0])], stamp=postgres_now_us())


@pytest.mark.parametrize("count", [20, 300], ids=["by row", "by range"])
def test_a_message_is_restored_from_the_other_purge_after_its_copies_expired(
    mona: User, channel: Channel, count: int
) -> None:
    ids = old_ids(count)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    drafts = [preview(mona, by_victor(channel)), preview(mona, by_victor(channel))]
    first = run_to_end(confirm(mona, drafts[0]))
    age_timestamps(channel)
    second = run_to_end(confirm(mona, drafts[1]))
    assert undo(mona, first) == {"requested": count // 2, "still_purged": count // 2}
    expire_copies(first, channel, ids)
    assert undo(mona, second) == {"requested": count // 2, "restored": count // 2}
    second.refresh_from_db()
    assert second.state == PurgeState.UNDONE
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_the_last_undo_of_three_overlapping_purges_restores_it(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    drafts = [preview(mona, everything(channel)) for _ in range(3)]
    first, second, third = (run_to_end(confirm(mona, draft)) for draft in drafts)
    undo(mona, first)
    expire_copies(first, channel, ids)
    assert undo(mona, second) == {"requested": 20, "still_purged": 20}
    expire_copies(second, channel, ids)
    assert undo(mona, third) == {"requested": 20, "restored": 20}
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_copies_of_withdrawn_messages_are_not_extended(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    drafts = [preview(mona, everything(channel)) for _ in range(2)]
    first, second = (run_to_end(confirm(mona, draft)) for draft in drafts)
    withdraw_message(channel.pk, ids[0], actor=VICTOR)
    undo(mona, first)
    expire_copies(first, channel, ids)
    assert undo(mona, second)["restored"] == 19
