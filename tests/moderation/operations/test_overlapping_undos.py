"""Overlapping purges can each be undone for their own thirty days, whichever quarantine expires first."""

import pytest
from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.operations.gateway.messages import withdraw_message
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.undo.requests import UndoPart, ask_undo, sum_of_undo
from moderation.store.quarantine import erase_kept
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    by_victor,
    confirm,
    everything,
    ids_of,
    let_stamps_age,
    old_ids,
    preview,
    run_to_end,
    write,
)


def undo(moderator: User, purge: Purge) -> dict[str, int]:
    asked = ask_undo(purge.pk, moderator=moderator, part=UndoPart())
    run_to_end(purge)
    return {name: count for name, count in sum_of_undo(asked).as_json().items() if count}


def let_expire(purge: Purge, channel: Channel, ids: list[int]) -> None:
    """Expire all copies that the purge itself keeps."""
    erase_kept(purge.pk, channel.pk, [bucket_of(ids[0])], stamp=postgres_now_us())


@pytest.mark.parametrize("count", [20, 300], ids=["by row", "by range"])
def test_what_one_removed_comes_back_with_the_other_after_its_copies_have_expired(
    mona: User, channel: Channel, count: int
) -> None:
    ids = old_ids(count)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    drafts = [preview(mona, by_victor(channel)), preview(mona, by_victor(channel))]
    first = run_to_end(confirm(mona, drafts[0]))
    let_stamps_age(channel)
    second = run_to_end(confirm(mona, drafts[1]))
    assert undo(mona, first) == {"asked": count // 2, "still_purged": count // 2}
    let_expire(first, channel, ids)
    assert undo(mona, second) == {"asked": count // 2, "restored": count // 2}
    second.refresh_from_db()
    assert second.state == PurgeState.UNDONE
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_of_three_the_last_one_undone_brings_it_back(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    drafts = [preview(mona, everything(channel)) for _ in range(3)]
    first, second, third = (run_to_end(confirm(mona, draft)) for draft in drafts)
    undo(mona, first)
    let_expire(first, channel, ids)
    assert undo(mona, second) == {"asked": 20, "still_purged": 20}
    let_expire(second, channel, ids)
    assert undo(mona, third) == {"asked": 20, "restored": 20}
    assert ids_of(channel, bucket_of(ids[0])) == ids


def test_what_its_author_withdrew_is_not_kept_longer(mona: User, channel: Channel) -> None:
    ids = old_ids(20)
    write(channel, ids)
    drafts = [preview(mona, everything(channel)) for _ in range(2)]
    first, second = (run_to_end(confirm(mona, draft)) for draft in drafts)
    withdraw_message(channel.pk, ids[0], actor=VICTOR)
    undo(mona, first)
    let_expire(first, channel, ids)
    assert undo(mona, second)["restored"] == 19
