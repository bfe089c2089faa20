"""A scan continues where it was left: after its turn, or after its worker was lost."""

from __future__ import annotations

import pytest

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, ManifestBucket, Purge, Step
from moderation.operations.preview import bucket_reads, scan
from moderation.operations.preview.manifest_summary import Summary, compute_summary, summary_of
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import discard_preview, draft_purge
from moderation.operations.purging.scheduling import due_scans
from tests.moderation.channels import VICTOR, WILMA, make_channel, old_ids, preview, write


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> list[Channel]:
    """Three channels of three buckets, which are frozen one by one."""
    monkeypatch.setattr(bucket_reads, "PLAN_ROWS", 1)
    made = [make_channel() for _ in range(3)]
    for channel in made:
        for ago in (5, 4, 3):
            ids = old_ids(7, buckets_ago=ago)
            write(channel, ids[::2], author=VICTOR)
            write(channel, ids[1::2], author=WILMA)
    return made


def selection_of(channels: list[Channel]) -> Selection:
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR, WILMA)))


def places_of(summary: Summary) -> tuple[object, ...]:
    # Each message is in every channel, and may be listed in any order.
    return summary.channel_count, summary.channels, summary.periods, sorted(summary.newest)


def assert_same(purge: Purge, other: Purge) -> None:
    """Check that two scans of the same messages have frozen the same."""
    purge.refresh_from_db()
    assert (purge.state, purge.manifest, purge.scanned) == (PurgeState.READY, other.manifest, other.scanned)
    assert bytes(purge.manifest_hash or b"") == bytes(other.manifest_hash or b"-")
    steps = [
        [(step.ordinal, step.channel_id, step.bucket, unpack_ids(step.ids)) for step in one.steps.order_by("ordinal")]
        for one in (purge, other)
    ]
    assert steps[0] == steps[1]
    assert ManifestBucket.objects.filter(purge=purge).count() == 9


def test_a_scan_that_is_left_after_each_turn_freezes_the_same(mona: User, channels: list[Channel]) -> None:
    purge = draft_purge(moderator=mona, selection=selection_of(channels))
    turns = 0
    while purge.state == PurgeState.SCANNING:
        assert purge.pk in due_scans()
        scan_purge(purge.pk, ends_turn=lambda: True)
        purge.refresh_from_db()
        turns += 1
        assert places_of(summary_of(purge)) == places_of(Summary.from_json(compute_summary(purge.pk)))
    assert turns >= 9
    assert_same(purge, preview(mona, selection_of(channels)))


def test_a_scan_whose_worker_was_lost_is_continued(
    mona: User, channels: list[Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = draft_purge(moderator=mona, selection=selection_of(channels))
    store = scan.store_buckets
    frozen: list[object] = []

    class LostError(Exception):
        pass

    def lose_the_worker(*args: object) -> None:
        if len(frozen) == 4:
            raise LostError
        frozen.append(args)
        store(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(scan, "store_buckets", lose_the_worker)
        with pytest.raises(LostError):
            scan_purge(purge.pk)
    assert Step.objects.filter(purge=purge).count() == 4
    Purge.objects.filter(pk=purge.pk).update(scan_lease_until="2020-01-01T00:00:00Z")
    scan_purge(purge.pk)
    assert_same(purge, preview(mona, selection_of(channels)))


def test_a_scan_that_is_discarded_stops_at_the_next_bucket(
    mona: User, channels: list[Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = draft_purge(moderator=mona, selection=selection_of(channels))
    frozen: list[object] = []
    store = scan.store_buckets

    def discard_after_two(*args: object) -> None:
        frozen.append(args)
        store(*args)  # type: ignore[arg-type]

    def ends_turn() -> bool:
        if len(frozen) == 2:
            discard_preview(purge.pk, moderator=mona)
        return False

    monkeypatch.setattr(scan, "store_buckets", discard_after_two)
    scan_purge(purge.pk, ends_turn=ends_turn)
    purge.refresh_from_db()
    assert (purge.state, len(frozen)) == (PurgeState.EXPIRED, 2)
    assert purge.pk not in due_scans()
    assert AuditEntry.objects.filter(purge=purge, action="preview_discarded").count() == 1
    assert summary_of(purge).count == purge.manifest > 0
    scan_purge(purge.pk)
    purge.refresh_from_db()
    assert purge.state == PurgeState.EXPIRED
