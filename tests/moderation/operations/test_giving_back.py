"""A channel is unlocked when the purge has nothing left to do there, not only at the end of the purge."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from chatstore.models import Channel
from chatstore.operations.coordination.channel_lock import holder_of
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging import scheduling
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.rooms import VICTOR, by_victor, confirm, make_channel, old_ids, preview, recent_ids, write


def by_victor_in(channels: Sequence[Channel]) -> Selection:
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))


def test_whoever_waits_for_one_channel_of_several_is_told_while_the_purge_goes_on(mona: User) -> None:
    channels = [make_channel() for _ in range(3)]
    for channel in channels:
        write(channel, recent_ids(5))
    first = confirm(mona, preview(mona, by_victor_in(channels)))
    waiting = confirm(mona, preview(mona, by_victor(channels[0])))
    told: dict[int, tuple[str, list[int], list[str | None]]] = {}

    def note(channel_id: int) -> None:
        state = Purge.objects.values_list("state", flat=True).get(pk=first.pk)
        holders = [holder_of(channel.pk) for channel in channels]
        told[channel_id] = (state, scheduling.next_in_channel(channel_id, behind=first.pk), holders)

    assert run_purge(first.id, released=note).state == PurgeState.DONE
    assert set(told) == {channel.pk for channel in channels}
    state, next_up, holders = told[channels[0].pk]
    assert (state, next_up, holders[0]) == (PurgeState.RUNNING, [waiting.pk], None)


def test_it_is_held_while_a_second_step_of_it_is_due(mona: User) -> None:
    channel = make_channel()
    ids = [*old_ids(150), *recent_ids(5)]
    write(channel, ids)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    assert purge.steps.count() > 1
    told: list[int] = []
    assert run_purge(purge.id, released=told.append).state == PurgeState.DONE
    assert told == [channel.pk]


def test_an_undo_gives_each_channel_back_as_well(mona: User) -> None:
    channels = [make_channel() for _ in range(2)]
    for channel in channels:
        write(channel, recent_ids(5))
    purge = run_purge(confirm(mona, preview(mona, by_victor_in(channels))).id)
    ask_undo(purge.id, moderator=mona, part=UndoPart())
    told: list[int] = []
    assert run_purge(purge.id, released=told.append).state == PurgeState.UNDONE
    assert sorted(told) == sorted(channel.pk for channel in channels)
