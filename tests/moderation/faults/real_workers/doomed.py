"""Purges of one step each, one per delete strategy, and checks of their results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from chatstore.models import Channel
from chatstore.operations.coordination.channel_lock import holder_of
from moderation.domain.planner import Way
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, Step, Undo
from moderation.operations.steps.totals import sum_of
from moderation.operations.undo.requests import sum_of_undo
from tests.moderation.rooms import (
    VICTOR,
    WILMA,
    buckets_of,
    by_victor,
    choose,
    confirm,
    ids_of,
    make_channel,
    old_ids,
    preview,
    write,
)


@dataclass(frozen=True, slots=True)
class Doomed:
    """A confirmed purge of one step, with the ids it deletes and the ids it must keep."""

    way: Way
    channel: Channel
    purge: Purge
    going: list[int]
    staying: list[int]

    def left(self) -> list[int]:
        return ids_of(self.channel, *buckets_of([*self.going, *self.staying]))

    def state(self) -> str:
        """Return the state of the newest step, of the purge or of its undo."""
        return Step.objects.filter(purge_id=self.purge.id).latest("ordinal").state

    def is_finished(self) -> bool:
        self.purge.refresh_from_db()
        return self.purge.finished_at is not None and self.purge.state != PurgeState.UNDOING


def doom(moderator: User, way: Way) -> Doomed:
    """Preview and confirm a purge, so that the workers execute it."""
    doomed = preview_doomed(moderator, way)
    confirm(moderator, doomed.purge)
    return doomed


def preview_doomed(moderator: User, way: Way) -> Doomed:
    """Preview a purge that uses the given delete strategy.

    Rows: every second of 120 messages. Ranges: 300 messages with another author's in each third. Drop: a whole bucket.
    Rewrite: every second of 1,200, which makes so many ranges that some survivors are rewritten.
    """
    channel = make_channel()
    ids = old_ids({Way.ROWS: 120, Way.RANGES: 300, Way.DROP: 200, Way.REWRITE: 1_200}[way])
    staying = {
        Way.ROWS: ids[::2],
        Way.RANGES: ids[50::100],
        Way.DROP: old_ids(5, buckets_ago=4),
        Way.REWRITE: ids[::2],
    }[way]
    going = sorted(set(ids).difference(staying))
    write(channel, going, author=VICTOR)
    write(channel, staying, author=WILMA)
    return Doomed(way, channel, preview(moderator, selection_of(way, channel, going)), going, staying)


def preview_again(moderator: User, doomed: Doomed) -> Doomed:
    """Preview a second purge of the restored messages."""
    selection = selection_of(doomed.way, doomed.channel, doomed.going)
    return replace(doomed, purge=preview(moderator, selection))


def selection_of(way: Way, channel: Channel, going: list[int]) -> Selection:
    return choose(channel.id, after_id=going[0]) if way is Way.DROP else by_victor(channel)


def assert_done_exactly(doomed: Doomed) -> None:
    doomed.purge.refresh_from_db()
    total = sum_of(doomed.purge)
    assert doomed.left() == sorted(doomed.staying)
    assert (doomed.purge.state, total.manifest) == (PurgeState.DONE, len(doomed.going))
    assert (total.deleted, total.already_gone, total.failed, total.left) == (len(doomed.going), 0, 0, 0)
    assert Step.objects.get(purge_id=doomed.purge.id).how == doomed.way
    acts = AuditEntry.objects.filter(purge=doomed.purge).values_list("act", flat=True)
    assert sorted(acts) == ["purge_confirmed", "purge_drafted", "purge_finished", "step_counted"]
    assert holder_of(doomed.channel.id) is None


def assert_undone_exactly(doomed: Doomed, undo: Undo) -> None:
    """Check that everything is live again and that each id was counted once."""
    doomed.purge.refresh_from_db()
    total = sum_of_undo(undo)
    assert doomed.left() == sorted([*doomed.staying, *doomed.going])
    assert doomed.purge.state == PurgeState.UNDONE
    assert (total.asked, total.restored) == (len(doomed.going), len(doomed.going))
    acts = AuditEntry.objects.filter(purge=doomed.purge, act__startswith="undo").values_list("act", flat=True)
    assert sorted(acts) == ["undo_asked", "undo_finished", "undo_step_counted"]
    assert holder_of(doomed.channel.id) is None
