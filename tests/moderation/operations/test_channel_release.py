"""A channel is unlocked when the purge has nothing left to do there, not only at the end of the purge."""

from collections.abc import Sequence

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging import scheduling
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import VICTOR, by_victor, confirm, make_channel, old_ids, preview, recent_ids, write


def by_victor_in(channels: Sequence[Channel]) -> Selection:
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))


def test_a_job_waiting_for_one_of_several_channels_is_enqueued_while_the_purge_continues(mona: User) -> None:
    channels = [make_channel() for _ in range(3)]
    for channel in channels:
        write(channel, recent_ids(5))
    first = confirm(mona, preview(mona, by_victor_in(channels)))
    waiting = confirm(mona, preview(mona, by_victor(channels[0])))
    enqueued: dict[int, tuple[str, list[int], list[str | None]]] = {}

    def note(channel_ids: Sequence[int]) -> None:
        state = Purge.objects.values_list("state", flat=True).get(pk=first.pk)
        holders = [lock_owner(channel.pk) for channel in channels]
        for channel_id in channel_ids:
            enqueued[channel_id] = (state, scheduling.waiting_in_channels([channel_id], excluding=first.pk), holders)

    assert run_purge(first.id, on_release=note).state == PurgeState.DONE
    assert set(enqueued) == {channel.pk for channel in channels}
    state, next_up, holders = enqueued[channels[0].pk]
    assert (state, next_up, holders[0]) == (PurgeState.RUNNING, [waiting.pk], None)


def test_a_channel_stays_locked_while_another_step_of_it_is_due(mona: User) -> None:
    channel = make_channel()
    ids = [*old_ids(150), *recent_ids(5)]
    write(channel, ids)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    assert purge.steps.count() > 1
    enqueued: list[int] = []
    assert run_purge(purge.id, on_release=enqueued.extend).state == PurgeState.DONE
    assert enqueued == [channel.pk]


def test_an_undo_unlocks_each_channel_too(mona: User) -> None:
    channels = [make_channel() for _ in range(2)]
    for channel in channels:
        write(channel, recent_ids(5))
    purge = run_purge(confirm(mona, preview(mona, by_victor_in(channels))).id)
    request_undo(purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    enqueued: list[int] = []
    assert run_purge(purge.id, on_release=enqueued.extend).state == PurgeState.UNDONE
    assert sorted(enqueued) == sorted(channel.pk for channel in channels)
