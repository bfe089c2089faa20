"""Scan: finds the messages that a selection matches, freezes them as the manifest, and plans the deletes.

The store is not changed. An interrupted scan starts over; it is claimed by a token with a lease, like a step.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from django.conf import settings
from django.db import connection
from django.db.models import Q, Sum

from chatstore.domain.buckets import is_sealed
from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.messages import MESSAGE_ID
from chatstore.domain.snowflakes import first_id_at, ms_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import ChatUser
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.clock import postgres_now_us
from chatstore.store import scans
from moderation.domain.filters import Row
from moderation.domain.holds import HeldRows
from moderation.domain.packing import hash_bucket
from moderation.domain.planner import RECENT_MS, BucketSplit, plan_bucket
from moderation.domain.selection import Selection
from moderation.domain.sketches import step_columns
from moderation.domain.states import PurgeState, StepKind
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.holds import hold_coverage
from moderation.operations.purging.wait_reasons import waiting_for
from moderation.operations.selection.scope import buckets_in_scope
from moderation.operations.steps.claiming import brief_transaction, lock_purge

SCAN_LEASE = dt.timedelta(seconds=60)
"""Renewed with every bucket, and while a large one is read. A scan whose lease expired is restarted by another
worker.
"""


RENEW_SECONDS = 10.0
"""Interval of lease renewals while one bucket is read: millions of messages take a minute."""

SCAN_RETRY = dt.timedelta(seconds=5)
"""Delay after the store was unavailable."""


class ScanLost(Exception):
    """Another worker has taken over the scan."""


@dataclass(frozen=True, slots=True)
class ScannedBucket:
    """Scan result of one bucket, with its plan."""

    channel_id: int
    bucket: int
    scanned: int
    matched: list[int]
    survivors: int
    authors: Counter[int]
    split: BucketSplit
    held_at_scan: int = 0


def scan_purge(purge_id: int) -> None:
    """Scan and freeze: *scanning* → *ready* or *nothing_matched*.

    Returns at once if another worker has claimed the scan.

    Raises `StoreUnavailable`; the scan is retried a few seconds later.
    """
    token = uuid.uuid4()
    if not _claim_scan(purge_id, token):
        return
    purge = Purge.objects.select_related("moderator").get(id=purge_id)
    selection = Selection.from_json(purge.selection)
    renew = partial(_renew_scan, purge_id, token)
    pick = selection.matcher(bots=_bots(selection))
    try:
        ordinal = 0
        for channel_id, bucket in buckets_in_scope(selection, purge.moderator):
            scanned = _scan_bucket(channel_id, bucket, selection.columns, pick, renew)
            if scanned.scanned:
                ordinal = _freeze_bucket(purge_id, token, scanned, ordinal)
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
    """Claim the scan and delete the results of an earlier one, in one transaction.

    Otherwise a scanner that was suspended in between could delete what another one has frozen and a moderator has
    confirmed.
    """
    with brief_transaction():
        claimed = Purge.objects.filter(
            Q(scan_lease_until__isnull=True) | Q(scan_lease_until__lt=ClockTimestamp()),
            id=purge_id,
            state=PurgeState.SCANNING,
        ).update(scan_token=token, scan_lease_until=_lease_end(), scanned=0, manifest=0, held_at_scan=0, wait_reason="")
        if claimed:
            Step.objects.filter(purge_id=purge_id).delete()
            ManifestBucket.objects.filter(purge_id=purge_id).delete()
    return claimed == 1


def _renew_scan(purge_id: int, token: uuid.UUID) -> None:
    renewed = Purge.objects.filter(id=purge_id, scan_token=token).update(scan_lease_until=_lease_end())
    if renewed != 1:
        raise ScanLost


def _bots(selection: Selection) -> frozenset[int]:
    if "webhook_id" not in selection.columns:
        return frozenset()
    return frozenset(ChatUser.objects.filter(is_bot=True).values_list("id", flat=True))


def _scan_bucket(
    channel_id: int,
    bucket: int,
    columns: Sequence[str],
    pick: Callable[[Sequence[Row]], list[Row]],
    renew: Callable[[], None],
) -> ScannedBucket:
    matched: list[int] = []
    survivors: list[int] = []
    authors: Counter[int] = Counter()
    held_rows = HeldRows(hold_coverage(channel_id))
    pages = scans.read_parts(channel_id, bucket, columns)
    renewed_at = time.monotonic()
    for page in pages:
        unheld = held_rows.without_held(pick(page))
        ids = [row[MESSAGE_ID] for row in unheld]
        matched.extend(ids)
        authors.update(map(itemgetter(1), unheld))
        if len(unheld) < len(page):
            chosen = frozenset(ids)
            survivors.extend(row[MESSAGE_ID] for row in page if row[MESSAGE_ID] not in chosen)
        if time.monotonic() - renewed_at >= RENEW_SECONDS:
            renew()
            renewed_at = time.monotonic()
    matched.reverse()
    survivors.reverse()
    return ScannedBucket(
        channel_id=channel_id,
        bucket=bucket,
        scanned=len(matched) + len(survivors),
        matched=matched,
        survivors=len(survivors),
        authors=authors,
        split=split_bucket(bucket, matched, survivors, existing_tombstones=pages.count_tombstones()),
        held_at_scan=len(held_rows.ids),
    )


def split_bucket(bucket: int, matched: list[int], survivors: list[int], *, existing_tombstones: int) -> BucketSplit:
    """Split the matched ids of a bucket into steps and plan them for its current contents.

    matched, survivors: ids, ascending. existing_tombstones: tombstones that a read of the bucket already scans.
    """
    now_ms = postgres_now_us() // 1_000
    return plan_bucket(
        matched,
        survivors,
        recent_from=first_id_at(now_ms - RECENT_MS),
        existing_tombstones=existing_tombstones,
        sealed=is_sealed(bucket, now_ms=now_ms),
        budget=settings.PURGE_TOMBSTONE_BUDGET,
        later_from=settings.PURGE_LATER_TOMBSTONES,
    )


def _freeze_bucket(purge_id: int, token: uuid.UUID, scanned: ScannedBucket, ordinal: int) -> int:
    with brief_transaction():
        purge = lock_purge(purge_id)
        if purge.scan_token != token or purge.state != PurgeState.SCANNING:
            raise ScanLost
        Purge.objects.filter(id=purge_id).update(
            scanned=purge.scanned + scanned.scanned,
            manifest=purge.manifest + len(scanned.matched),
            held_at_scan=purge.held_at_scan + scanned.held_at_scan,
            scan_lease_until=_lease_end(),
        )
        return store_bucket(purge_id, scanned, ordinal) if scanned.matched else ordinal


def store_bucket(purge_id: int, scanned: ScannedBucket, ordinal: int) -> int:
    """Store a bucket of the manifest, and its steps after `ordinal`; return the last step's ordinal.

    The caller's transaction locks the purge's row.
    """
    split = scanned.split
    ManifestBucket.objects.create(
        purge_id=purge_id,
        channel_id=scanned.channel_id,
        bucket=scanned.bucket,
        count=len(scanned.matched),
        first_id=scanned.matched[0],
        last_id=scanned.matched[-1],
        manifest_hash=hash_bucket(scanned.channel_id, scanned.matched),
        survivors=scanned.survivors,
        authors={str(author): count for author, count in scanned.authors.most_common()},
        plan=split.plan.as_json(),
    )
    for kind, ids in (
        (StepKind.ROWS, split.rows),
        (StepKind.RANGES, split.ranges),
        (StepKind.LATER, split.later),
    ):
        if ids:
            ordinal += 1
            Step.objects.create(
                purge_id=purge_id,
                ordinal=ordinal,
                channel_id=scanned.channel_id,
                bucket=scanned.bucket,
                kind=kind,
                **step_columns(ids),
                due_at=_end_of_hour(ids[-1]) if kind == StepKind.LATER else None,
                wait_reason=_("Waiting for the last hour to pass; deleting these messages is cheaper then")
                if kind == StepKind.LATER
                else "",
            )
    return ordinal


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
    Purge.objects.filter(id=purge_id, scan_token=token, state=PurgeState.SCANNING).update(
        state=PurgeState.READY if matched else PurgeState.NOTHING_MATCHED,
        manifest=total,
        manifest_hash=manifest_hash,
        ready_at=ClockTimestamp(),
        scan_token=None,
        scan_lease_until=None,
    )


def _end_of_hour(message_id: int) -> dt.datetime:
    return dt.datetime.fromtimestamp((ms_of(message_id) + RECENT_MS) / 1_000, tz=dt.UTC)


def _lease_end() -> object:
    return ClockTimestamp() + SCAN_LEASE
