"""Scan: finds the messages that a selection matches, freezes them as the manifest, and plans the deletes.

The store is not changed. A scan is claimed by a token with a lease, like a step. The buckets that were frozen and the
position of the scan are stored together, so that an interrupted scan continues where it was.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from django.db import connection
from django.db.models import Max, Q, Sum

from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.snowflakes import ms_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import ChatUser
from chatstore.models.functions import ClockTimestamp
from moderation.domain.packing import hash_bucket
from moderation.domain.planner import RECENT_MS
from moderation.domain.selection import Selection
from moderation.domain.sketches import step_columns
from moderation.domain.states import PurgeState, StepKind
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.preview.bucket_reads import ScannedBucket, scan_buckets
from moderation.operations.preview.manifest_summary import compute_summary, store_summary
from moderation.operations.preview.scan_places import add_to_places
from moderation.operations.purging.wait_reasons import waiting_for
from moderation.operations.selection.scope import buckets_in_scope
from moderation.operations.steps.claiming import brief_transaction, lock_purge

SCAN_LEASE = dt.timedelta(seconds=60)
"""Renewed whenever buckets are stored, and while a large one is read. If it expires, another worker continues."""


SCAN_RETRY = dt.timedelta(seconds=5)
"""Delay after the store was unavailable."""


class ScanLost(Exception):
    """Another worker has taken over the scan."""


def scan_purge(purge_id: int, *, ends_turn: Callable[[], bool] = lambda: False) -> None:
    """Scan and freeze: *scanning* → *ready* or *nothing_matched*.

    Returns at once if another worker has claimed the scan. ends_turn: called whenever buckets were frozen; if true, the
    rest is left for another turn.

    Raises `StoreUnavailable`; the scan is retried a few seconds later.
    """
    token = uuid.uuid4()
    if not _claim_scan(purge_id, token):
        return
    ordinal = Step.objects.filter(purge_id=purge_id).aggregate(last=Max("ordinal", default=0))["last"]
    purge = Purge.objects.select_related("moderator").get(id=purge_id)
    selection = Selection.from_json(purge.selection)
    renew = partial(_renew_scan, purge_id, token)
    pick = selection.matcher(bots=_bots(selection))
    try:
        buckets = buckets_in_scope(selection, purge.moderator, after=purge.scanned_to)
        for scanned in scan_buckets(selection, buckets, pick=pick, renew=renew, is_begun=purge.scanned_to is not None):
            ordinal = _freeze(purge_id, token, scanned, ordinal)
            if ends_turn():
                _release_scan(purge_id, token)
                return
        _freeze_manifest(purge_id, token)
    except ScanLost:
        return
    except (StoreUnavailable, TooManyTombstones) as unavailable:
        Purge.objects.filter(id=purge_id, scan_token=token).update(
            scan_lease_until=ClockTimestamp() + SCAN_RETRY,
            wait_reason=waiting_for(unavailable),
        )
        raise


def _claim_scan(purge_id: int, token: uuid.UUID) -> bool:
    """Claim the scan if no worker has it; return whether it was claimed."""
    free = Q(scan_lease_until__isnull=True) | Q(scan_lease_until__lt=ClockTimestamp())
    scans = Purge.objects.filter(free, id=purge_id, state=PurgeState.SCANNING)
    return scans.update(scan_token=token, scan_lease_until=_lease_end(), wait_reason="") == 1


def _release_scan(purge_id: int, token: uuid.UUID) -> None:
    Purge.objects.filter(id=purge_id, scan_token=token).update(scan_token=None, scan_lease_until=None)


def _renew_scan(purge_id: int, token: uuid.UUID) -> None:
    renewed = Purge.objects.filter(id=purge_id, scan_token=token).schedule(scan_lease_until=_lease_end())
    if renewed != 1:
        raise ScanLost


def _bots(selection: Selection) -> frozenset[int]:
    if "webhook_id" not in selection.columns:
        return frozenset()
    return frozenset(ChatUser.objects.filter(is_bot=True).values_list("id", flat=True))


def _freeze(purge_id: int, token: uuid.UUID, scanned: Sequence[ScannedBucket], ordinal: int) -> int:
    # Hundreds of buckets take as long to pack and hash as to store: not while the purge is locked.
    rows = prepare_buckets(purge_id, [bucket for bucket in scanned if bucket.matched], ordinal)
    with brief_transaction():
        purge = lock_purge(purge_id)
        if purge.scan_token != token or purge.state != PurgeState.SCANNING:
            raise ScanLost
        Purge.objects.filter(id=purge_id).update(
            scanned=purge.scanned + sum(bucket.scanned for bucket in scanned),
            manifest=purge.manifest + sum(len(bucket.matched) for bucket in scanned),
            held_at_scan=purge.held_at_scan + sum(bucket.held_at_scan for bucket in scanned),
            scan_lease_until=_lease_end(),
            **_position_after(scanned),
        )
        add_to_places(purge_id, rows[0])
        return store_buckets(rows, ordinal)


def _position_after(scanned: Sequence[ScannedBucket]) -> dict[str, int]:
    return {"scanned_channel_id": scanned[-1].channel_id, "scanned_bucket": scanned[-1].bucket} if scanned else {}


def prepare_buckets(
    purge_id: int, scanned: Sequence[ScannedBucket], ordinal: int
) -> tuple[list[ManifestBucket], list[Step]]:
    """Return buckets of the manifest, and their steps with the ordinals after `ordinal`, for `store_buckets`."""
    steps = [step for bucket in scanned for step in _steps_of(purge_id, bucket)]
    for number, step in enumerate(steps, ordinal + 1):
        step.ordinal = number
    return [_manifest_bucket(purge_id, bucket) for bucket in scanned], steps


def store_buckets(rows: tuple[list[ManifestBucket], list[Step]], ordinal: int) -> int:
    """Store buckets and their steps; return the last step's ordinal, or `ordinal` if there is none.

    The caller's transaction locks the purge's row.
    """
    buckets, steps = rows
    ManifestBucket.objects.bulk_create(buckets)
    Step.objects.bulk_create(steps)
    return ordinal + len(steps)


def _manifest_bucket(purge_id: int, scanned: ScannedBucket) -> ManifestBucket:
    return ManifestBucket(
        purge_id=purge_id,
        channel_id=scanned.channel_id,
        bucket=scanned.bucket,
        count=len(scanned.matched),
        first_id=scanned.matched[0],
        last_id=scanned.matched[-1],
        manifest_hash=hash_bucket(scanned.channel_id, scanned.matched),
        survivors=scanned.survivors,
        authors={str(author): count for author, count in scanned.authors.most_common()},
        plan=scanned.split.plan.as_json(),
    )


def _steps_of(purge_id: int, scanned: ScannedBucket) -> Iterator[Step]:
    """Yield the steps of a bucket, without ordinals."""
    split = scanned.split
    for kind, ids in (
        (StepKind.ROWS, split.rows),
        (StepKind.RANGES, split.ranges),
        (StepKind.LATER, split.later),
    ):
        if ids:
            yield Step(
                purge_id=purge_id,
                channel_id=scanned.channel_id,
                bucket=scanned.bucket,
                kind=kind,
                **step_columns(ids),
                due_at=_end_of_hour(ids[-1]) if kind == StepKind.LATER else None,
                wait_reason=_("Waiting for the last hour to pass; deleting these messages is cheaper then")
                if kind == StepKind.LATER
                else "",
            )


_MANIFEST_HASH = f"""SELECT sha256(string_agg(manifest_hash, ''::bytea ORDER BY channel_id, bucket))
    FROM {ManifestBucket._meta.db_table} WHERE purge_id = %s HAVING bool_and(manifest_hash IS NOT NULL)"""


def hash_manifest(purge_id: int) -> bytes | None:
    """Return the hash of everything that a purge is to delete, as currently stored; None if that is nothing.

    Computed by Postgres, because there may be 50,000 buckets. Also None for a preview of an older version, whose
    buckets have no hashes.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MANIFEST_HASH, [purge_id])
        row = cursor.fetchone()
    return None if row is None or row[0] is None else bytes(row[0])


def _freeze_manifest(purge_id: int, token: uuid.UUID) -> None:
    manifest_hash = hash_manifest(purge_id)
    total: int = Step.objects.filter(purge_id=purge_id).aggregate(total=Sum("count", default=0))["total"]
    matched = ManifestBucket.objects.filter(purge_id=purge_id).exists()
    # Another worker that has taken over the scan stores its own.
    summary = compute_summary(purge_id)
    with brief_transaction():
        is_own = Purge.objects.filter(id=purge_id, scan_token=token, state=PurgeState.SCANNING).update(
            state=PurgeState.READY if matched else PurgeState.NOTHING_MATCHED,
            manifest=total,
            manifest_hash=manifest_hash,
            ready_at=ClockTimestamp(),
            scan_token=None,
            scan_lease_until=None,
        )
        # Only with the purge's row locked: an exclusion stores another summary.
        if is_own:
            store_summary(purge_id, summary)


def _end_of_hour(message_id: int) -> dt.datetime:
    return dt.datetime.fromtimestamp((ms_of(message_id) + RECENT_MS) / 1_000, tz=dt.UTC)


def _lease_end() -> object:
    return ClockTimestamp() + SCAN_LEASE
