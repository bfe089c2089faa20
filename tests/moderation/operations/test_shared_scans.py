"""Several workers share one scan, and freeze what one worker would, each bucket once, whatever happens to them."""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.roles import Role
from chatstore.models import RoleGrant
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, ManifestBucket, Purge, ScanPart
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.preview import bucket_reads, scan, scan_parts
from moderation.operations.preview.manifest_summary import Summary, compute_summary, summary_of
from moderation.operations.preview.samples import newest_matches
from moderation.operations.preview.scan import scan_purge, scan_to_end
from moderation.operations.preview.scan_parts import claim_ahead, claim_part
from moderation.operations.purging.lifecycle import discard_preview, draft_purge
from moderation.operations.purging.scheduling import can_scan_be_joined, due_scans
from moderation.operations.purging.wait_reasons import wait_of
from moderation.operations.selection.scope import buckets_in_scope
from moderation.presentation.audit import facts_in_short
from tests.conftest import make_user
from tests.moderation.channels import (
    WILMA,
    choose,
    confirm,
    make_channel,
    old_ids,
    preview,
    recent_ids,
    run_to_end,
    write,
)
from tests.waiting import wait_until

EXPIRED = "2020-01-01T00:00:00Z"

STATEMENTS_OF_A_SMALL_SCAN = 32


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze buckets one by one; list parts of three buckets, three at a time."""
    monkeypatch.setattr(bucket_reads, "PLAN_ROWS", 1)
    monkeypatch.setattr(scan, "FIRST_BUCKETS", 2)
    monkeypatch.setattr(scan, "PARTS_AHEAD", 3)
    monkeypatch.setattr(scan_parts, "PART_BUCKETS", 3)


@pytest.fixture
def selection(lena: User) -> Selection:
    """An author in six channels of one to seven buckets; one message of each bucket is held."""
    author, held = secrets.randbits(60), secrets.randbits(60)
    channels = sorted((make_channel() for _ in range(6)), key=lambda channel: channel.pk)
    for channel, buckets in zip(channels, (1, 7, 2, 3, 1, 5), strict=True):
        for ago in range(2 + buckets, 2, -1):
            ids = old_ids(6, buckets_ago=ago)
            write(channel, ids[:3], author=author)
            write(channel, ids[3:5], author=WILMA)
            write(channel, ids[5:], author=held)
    place_hold(HoldRequest(author=str(held)), reason="evidence", actor=lena)
    return Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((author, held)))


def draft(moderator: User, selection: Selection) -> Purge:
    return draft_purge(moderator=moderator, selection=selection)


def scan_at_once(purge: Purge, *, workers: int) -> None:
    """Scan with several workers at the same time, each of which comes back until the scan has ended."""

    def work() -> None:
        try:
            scan_to_end(purge.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work) for _ in range(workers)]:
            done.result()


def expire_leases(purge: Purge) -> None:
    """Let all claims of the scan lapse, as those of killed workers do after a minute."""
    Purge.objects.filter(pk=purge.pk, scan_token__isnull=False).update(scan_lease_until=EXPIRED)
    ScanPart.objects.filter(purge=purge, lease_until__isnull=False).update(lease_until=EXPIRED)


def frozen(purge: Purge) -> tuple[object, ...]:
    """Return all that a scan freezes, apart from the ordinals of its steps."""
    purge.refresh_from_db()
    steps = sorted((step.channel_id, step.bucket, step.kind, tuple(unpack_ids(step.ids))) for step in purge.steps.all())
    columns = "channel_id", "bucket", "count", "survivors", "authors", "plan"
    buckets = list(ManifestBucket.objects.filter(purge=purge).order_by(*columns[:2]).values_list(*columns))
    counts = purge.state, purge.scanned, purge.manifest, purge.held_at_scan
    return counts, bytes(purge.manifest_hash or b""), steps, buckets


def assert_frozen_once(purge: Purge, moderator: User, selection: Selection) -> None:
    """Check that the scan has frozen the same as another one that was alone."""
    alone = preview(moderator, selection)
    assert frozen(purge) == frozen(alone)
    assert (purge.state, purge.manifest, purge.scanned, purge.held_at_scan) == (PurgeState.READY, 57, 114, 19)
    assert sorted(purge.steps.values_list("ordinal", flat=True)) == list(range(1, 20))
    assert (purge.scan_token, purge.scan_lease_until) == (None, None)
    assert not ScanPart.objects.filter(purge=purge).exists()
    assert summary_of(purge).count == 57


def assert_places_are_right(purge: Purge) -> None:
    """Check what the page of the running scan shows against what is stored."""
    shown, computed = summary_of(purge), Summary.from_json(compute_summary(purge.pk))
    assert (shown.channel_count, shown.channels, shown.periods) == (
        computed.channel_count,
        computed.channels,
        computed.periods,
    )
    # Each message is in several channels, and may be listed in any order.
    assert sorted(shown.newest) == sorted(computed.newest)


@pytest.mark.parametrize("workers", [2, 3])
def test_several_workers_at_once_freeze_the_same_as_one(mona: User, selection: Selection, workers: int) -> None:
    purge = draft(mona, selection)
    scan_at_once(purge, workers=workers)
    assert_frozen_once(purge, mona, selection)
    done = run_to_end(confirm(mona, purge))
    assert done.state == PurgeState.DONE


def test_parts_that_are_stored_in_any_order_are_counted_and_shown_at_once(mona: User, selection: Selection) -> None:
    purge = draft(mona, selection)
    others: list[int] = []

    def scan_beside() -> bool:
        """Let another worker scan a bucket of another part, or all parts, after each bucket of this worker."""
        purge.refresh_from_db()
        assert_places_are_right(purge)
        shown = [
            message.message_id
            for window in newest_matches(mona, purge, summary_of(purge))
            for message in window.messages
        ]
        ids = [message_id for step in purge.steps.all() for message_id in unpack_ids(step.ids)]
        assert shown == sorted(ids, reverse=True)[:5]
        others.append(purge.scanned)
        scan_purge(purge.pk, ends_turn=lambda: len(others) % 3 > 0)
        return False

    scan_purge(purge.pk, ends_turn=scan_beside)
    scan_to_end(purge.pk)
    assert len(others) > 3
    assert_frozen_once(purge, mona, selection)


def test_a_worker_leaves_its_part_to_another_at_the_end_of_its_turn(mona: User, selection: Selection) -> None:
    purge = draft(mona, selection)
    turns = 0
    while purge.state == PurgeState.SCANNING:
        assert purge.pk in due_scans()
        scan_purge(purge.pk, ends_turn=lambda: True)
        purge.refresh_from_db()
        turns += 1
        assert_places_are_right(purge)
    assert turns >= 19
    assert_frozen_once(purge, mona, selection)


class KilledError(Exception):
    """Stands for the end of the process: nothing of the product handles it."""


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["claim_part", "_freeze", "add_to_places", "store_buckets", "_freeze_manifest"])
@pytest.mark.parametrize("calls", [1, 2, 3, 6, 9])
def test_a_worker_that_is_killed_anywhere_loses_nothing(
    mona: User, selection: Selection, monkeypatch: pytest.MonkeyPatch, victim: str, calls: int
) -> None:
    purge = draft(mona, selection)
    original: Callable[..., object] = getattr(scan, victim)
    called: list[object] = []

    def die_at_last(*args: object, **named: object) -> object:
        called.append(args)
        if len(called) == calls:
            raise KilledError
        result = original(*args, **named)
        if len(called) == calls + 1:
            # Its work is stored.
            raise KilledError
        return result

    with monkeypatch.context() as until_scanned:
        until_scanned.setattr(scan, victim, die_at_last)
        for _ in range(3):
            try:
                scan_to_end(purge.pk)
            except KilledError:
                expire_leases(purge)
            if Purge.objects.get(pk=purge.pk).state == PurgeState.SCANNING:
                assert purge.pk in due_scans()
    assert_frozen_once(purge, mona, selection)


def test_the_rest_of_a_lost_part_is_scanned_by_its_next_worker_only(mona: User, selection: Selection) -> None:
    purge = draft(mona, selection)
    stored: list[int] = []

    def be_slow() -> bool:
        purge.refresh_from_db()
        stored.append(purge.scanned)
        if len(stored) == 3:
            # This worker has stored one bucket of its part, and reads the next one until its lease has expired.
            expire_leases(purge)
            scan_purge(purge.pk)
        return False

    scan_purge(purge.pk, ends_turn=be_slow)
    assert len(stored) == 3
    assert_frozen_once(purge, mona, selection)


def test_a_scan_that_is_discarded_stops_all_of_its_workers(mona: User, selection: Selection) -> None:
    purge = draft(mona, selection)
    stored: list[str] = []

    def discard() -> bool:
        stored.append("second")
        discard_preview(purge.pk, moderator=mona)
        return False

    def scan_beside() -> bool:
        stored.append("first")
        if len(stored) == 4:
            scan_purge(purge.pk, ends_turn=discard)
        return False

    scan_purge(purge.pk, ends_turn=scan_beside)
    assert stored == ["first"] * 4 + ["second"]
    purge.refresh_from_db()
    assert (purge.state, purge.scanned) == (PurgeState.EXPIRED, 5 * 6)
    assert purge.pk not in due_scans()
    assert not ScanPart.objects.filter(purge=purge).exists()
    assert sum(purge.manifest_buckets.values_list("count", flat=True)) == purge.manifest == 5 * 3


@pytest.mark.parametrize("end", ["role", "account"])
def test_a_scan_whose_moderator_may_not_delete_in_its_scope_any_more_ends_without_a_preview(
    selection: Selection, end: str
) -> None:
    moderator = make_user("mo", group="moderators")
    purge = draft(moderator, selection)
    scan_purge(purge.pk, ends_turn=lambda: True)
    if end == "role":
        RoleGrant.objects.filter(account=moderator, role=Role.DIRECT).update(taken_at=ClockTimestamp())
    else:
        User.objects.filter(pk=moderator.pk).update(is_active=False)
    scan_purge(purge.pk)
    purge.refresh_from_db()
    assert (purge.state, purge.manifest_hash) == (PurgeState.EXPIRED, None)
    assert purge.pk not in due_scans()
    details = AuditEntry.objects.get(purge=purge, action="preview_expired").details
    assert ("Cause", "Its moderator may no longer delete everywhere in its scope.") in facts_in_short(details)


def test_a_part_that_cannot_be_read_is_tried_again_while_the_others_go_on(
    mona: User, selection: Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = draft(mona, selection)
    scan_buckets = bucket_reads.scan_buckets
    groups: list[object] = []

    def be_unavailable_once(*args: object, **named: object) -> object:
        groups.append(args)
        if len(groups) == 2:
            raise StoreUnavailable("too few replicas answer")
        return scan_buckets(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "scan_buckets", be_unavailable_once)
    monkeypatch.setattr(scan_parts, "SCAN_RETRY", dt.timedelta(hours=1))
    with pytest.raises(StoreUnavailable):
        scan_purge(purge.pk)
    purge.refresh_from_db()
    wait = wait_of(mona, purge)
    assert wait is not None
    assert wait.reason == "Waiting: too few replicas answer"
    # Not at once.
    assert purge.pk not in due_scans()
    scan_purge(purge.pk)
    purge.refresh_from_db()
    assert (purge.state, purge.wait_reason, ScanPart.objects.filter(purge=purge).count()) == (
        PurgeState.SCANNING,
        "",
        1,
    )
    expire_leases(purge)
    scan_purge(purge.pk)
    assert_frozen_once(purge, mona, selection)


def test_a_scan_is_joined_while_a_part_is_free_and_due_when_no_worker_is_left(mona: User, selection: Selection) -> None:
    purge = draft(mona, selection)
    seen: list[tuple[bool, bool]] = []

    def look() -> bool:
        seen.append((can_scan_be_joined(purge.pk), purge.pk in due_scans()))
        return len(seen) == 4

    scan_purge(purge.pk, ends_turn=look)
    # The first two buckets are scanned before any others are listed.
    assert seen == [(False, False), (False, False), (True, False), (True, False)]
    assert (can_scan_be_joined(purge.pk), purge.pk in due_scans()) == (True, True)
    while (part := claim_part(purge.pk, uuid.uuid4())) is not None:
        assert purge.pk not in due_scans()
    assert not can_scan_be_joined(purge.pk)
    assert part is None
    purge.refresh_from_db()
    assert wait_of(mona, purge) is None


def test_a_worker_keeps_its_claim_while_it_lists_what_is_ahead(
    mona: User, selection: Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    purge = draft(mona, selection)
    claimed_by_others: list[bool] = []

    def read_many_ledgers(*args: object, **named: object) -> Iterator[object]:
        for bucket in buckets_in_scope(*args, **named):  # type: ignore[arg-type]
            # As if it had taken a minute to find the next one.
            Purge.objects.filter(pk=purge.pk).update(scan_lease_until=EXPIRED)
            wait_until(lambda: purge.pk not in due_scans())
            claimed_by_others.append(claim_ahead(purge.pk, uuid.uuid4()))
            yield bucket

    with monkeypatch.context() as patches:
        patches.setattr(scan, "RENEW_SECONDS", 0.05)
        patches.setattr(scan, "buckets_in_scope", read_many_ledgers)
        scan_purge(purge.pk)
    assert len(claimed_by_others) == 1 + 7 + 2 + 3 + 1 + 5
    assert not any(claimed_by_others)
    assert_frozen_once(purge, mona, selection)


def test_a_command_waits_for_the_workers_that_share_its_scan(mona: User, selection: Selection) -> None:
    purge = draft(mona, selection)
    scan_purge(purge.pk, ends_turn=iter([False, True]).__next__)
    scan_purge(purge.pk, ends_turn=lambda: True)
    claimed = claim_part(purge.pk, uuid.uuid4())
    assert claimed is not None

    def scan_in_thread() -> None:
        try:
            scan_to_end(purge.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        scanning = pool.submit(scan_in_thread)
        wait_until(lambda: ScanPart.objects.filter(purge=purge).count() == 1)
        assert not scanning.done()
        claimed.release()
        scanning.result()
    assert_frozen_once(purge, mona, selection)


def test_a_scan_that_was_begun_by_one_worker_is_shared_from_there_on(mona: User, selection: Selection) -> None:
    """Scans of older versions had stored their position and no parts."""
    purge = draft(mona, selection)
    scan_purge(purge.pk, ends_turn=lambda: True)
    purge.refresh_from_db()
    assert purge.scanned_to is not None
    assert not ScanPart.objects.filter(purge=purge).exists()
    scan_at_once(purge, workers=2)
    assert_frozen_once(purge, mona, selection)


def test_a_small_scan_needs_no_parts_and_few_statements(mona: User) -> None:
    channel, ids = make_channel(), recent_ids(40)
    write(channel, ids)
    selected = choose(channel.pk, message_ids=ids[3:13])
    # The first read counts the tombstones of the bucket.
    preview(mona, selected)
    assert bucket_of(ids[0]) == bucket_of(ids[-1])
    purge = draft(mona, selected)
    with CaptureQueriesContext(connection) as sent:
        scan_purge(purge.pk)
    assert 'moderation_scanpart" SET' not in " ".join(query["sql"] for query in sent)
    assert Purge.objects.get(pk=purge.pk).state == PurgeState.READY
    assert len(sent) <= STATEMENTS_OF_A_SMALL_SCAN
