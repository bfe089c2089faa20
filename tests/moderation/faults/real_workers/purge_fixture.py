"""Purges of one step each, one per delete strategy, and checks of their results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from moderation.domain.planner import DeleteStrategy
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge, Step, Undo
from moderation.operations.purging.sums_check import has_wrong_sums
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import undo_totals_of
from tests.moderation.channels import (
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
from tests.waiting import wait_until


@dataclass(frozen=True, slots=True)
class PurgeFixture:
    """A confirmed purge of one step, with the ids it deletes and the ids it must keep."""

    strategy: DeleteStrategy
    channel: Channel
    purge: Purge
    matched_ids: list[int]
    kept_ids: list[int]

    def remaining_ids(self) -> list[int]:
        return ids_of(self.channel, *buckets_of([*self.matched_ids, *self.kept_ids]))

    def state(self) -> str:
        """Return the state of the only step, of the purge or, once that was requested, of its undo."""
        return (self.purge.undo_steps.first() or self.purge.steps.get()).state

    def is_finished(self) -> bool:
        self.purge.refresh_from_db()
        return self.purge.finished_at is not None and self.purge.state != PurgeState.UNDOING


def make_confirmed(moderator: User, strategy: DeleteStrategy) -> PurgeFixture:
    """Preview and confirm a purge, so that the workers execute it."""
    fixture = make_previewed(moderator, strategy)
    confirm(moderator, fixture.purge)
    return fixture


def make_previewed(moderator: User, strategy: DeleteStrategy) -> PurgeFixture:
    """Preview a purge that uses the given delete strategy.

    Rows: every second of 120 messages. Ranges: 300 messages with another author's in each third. Drop: a whole bucket.
    Rewrite: every second of 1,200, which makes so many ranges that some survivors are rewritten.
    """
    channel = make_channel()
    ids = old_ids(
        {DeleteStrategy.ROWS: 120, DeleteStrategy.RANGES: 300, DeleteStrategy.DROP: 200, DeleteStrategy.REWRITE: 1_200}[
            strategy
        ]
    )
    kept_ids = {
        DeleteStrategy.ROWS: ids[::2],
        DeleteStrategy.RANGES: ids[50::100],
        DeleteStrategy.DROP: old_ids(5, buckets_ago=4),
        DeleteStrategy.REWRITE: ids[::2],
    }[strategy]
    matched_ids = sorted(set(ids).difference(kept_ids))
    write(channel, matched_ids, author=VICTOR)
    write(channel, kept_ids, author=WILMA)
    purge = preview_here_or_there(moderator, selection_of(strategy, channel, matched_ids))
    return PurgeFixture(strategy, channel, purge, matched_ids, kept_ids)


def preview_here_or_there(moderator: User, selection: Selection) -> Purge:
    """Draft and scan a purge; a worker's poll may have claimed the scan first."""
    purge = preview(moderator, selection)

    def is_scanned() -> bool:
        purge.refresh_from_db()
        return purge.state != PurgeState.SCANNING

    wait_until(is_scanned)
    return purge


def preview_once_more(moderator: User, fixture: PurgeFixture) -> PurgeFixture:
    """Preview a second purge of the restored messages."""
    selection = selection_of(fixture.strategy, fixture.channel, fixture.matched_ids)
    return replace(fixture, purge=preview_here_or_there(moderator, selection))


def selection_of(strategy: DeleteStrategy, channel: Channel, matched_ids: list[int]) -> Selection:
    return choose(channel.id, after_id=matched_ids[0]) if strategy is DeleteStrategy.DROP else by_victor(channel)


def assert_done_exactly(fixture: PurgeFixture) -> None:
    fixture.purge.refresh_from_db()
    total = totals_of(fixture.purge)
    assert fixture.remaining_ids() == sorted(fixture.kept_ids)
    assert (fixture.purge.state, total.manifest) == (PurgeState.DONE, len(fixture.matched_ids))
    assert (total.deleted, total.already_gone, total.failed, total.left) == (len(fixture.matched_ids), 0, 0, 0)
    assert Step.objects.get(purge_id=fixture.purge.id).strategy == fixture.strategy
    actions = AuditEntry.objects.filter(purge=fixture.purge).values_list("action", flat=True)
    assert sorted(actions) == ["channel_purged", "purge_confirmed", "purge_drafted", "purge_finished"]
    assert lock_owner(fixture.channel.id) is None
    assert not has_wrong_sums(fixture.purge.id)


def assert_undone_exactly(fixture: PurgeFixture, undo: Undo) -> None:
    """Check that everything is live again and that each id was counted once."""
    fixture.purge.refresh_from_db()
    total = undo_totals_of(undo)
    assert fixture.remaining_ids() == sorted([*fixture.kept_ids, *fixture.matched_ids])
    assert fixture.purge.state == PurgeState.UNDONE
    assert (total.requested, total.restored) == (len(fixture.matched_ids), len(fixture.matched_ids))
    actions = set(AuditEntry.objects.filter(purge=fixture.purge).values_list("action", flat=True))
    assert actions >= {"channel_restored", "undo_finished", "undo_requested"}
    assert len(AuditEntry.objects.filter(purge=fixture.purge, action="channel_restored")) == 1
    assert lock_owner(fixture.channel.id) is None
    assert not has_wrong_sums(fixture.purge.id)
