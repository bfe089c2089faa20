"""Sharing of a scan among workers: what each of them has claimed, by a token with a lease.

What is ahead of a scan's position, in the order of its scope, is one claim, on the purge's row. Its worker scans the
first buckets itself, and the rest too if that is little. Otherwise it lists what is ahead in *parts*, some at a time:
rows that each worker claims, one after the other. A position is stored in the transaction that stores what was found up
to it, with the purge's row locked, so each bucket is counted once, whichever worker is killed.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import Combinable

from chatstore.models.functions import ClockTimestamp
from moderation.domain.states import PurgeState
from moderation.models import Purge, ScanPart
from moderation.models.purges import PurgeQuerySet
from moderation.models.scan_parts import ScanPartQuerySet
from moderation.operations.preview.bucket_reads import UNCOUNTED_ROWS
from moderation.operations.selection.scope import BucketInScope
from moderation.operations.steps.claiming import brief_transaction, lock_purge

SCAN_LEASE = dt.timedelta(seconds=60)
"""Renewed whenever buckets are stored, and while a large one is read. If it expires, another worker continues."""

SCAN_RETRY = dt.timedelta(seconds=5)
"""Delay after the store was unavailable."""

PART_BUCKETS = 256
PART_ROWS = 200_000
"""Maximum buckets of a part, and rows that are expected in it unless it is a single bucket."""

PARTS_AHEAD = 16
"""Parts that are listed at once; more when no worker is left without."""


class ScanLost(Exception):
    """Another worker has taken over what this one had claimed, or the preview was discarded."""


class Part(NamedTuple):
    """Buckets of a scope that follow each other; is_split: others have further buckets of the only channel."""

    buckets: Sequence[BucketInScope]
    is_split: bool


def split_scope(buckets: Iterable[BucketInScope], *, split: int | None = None) -> Iterator[Part]:
    """Yield the parts of a scope. Only channels that are too large for one are split.

    buckets: by channel. split: a channel of which other buckets are in parts that were listed before.
    """
    pending: list[BucketInScope] = []
    pending_rows = 0
    for channel_id, of_channel in groupby(buckets, key=lambda bucket: bucket.channel_id):
        *full, (rest, rows) = _split_channel(of_channel)
        is_split = bool(full) or channel_id == split
        if pending and (is_split or not _fits(len(pending) + len(rest), pending_rows + rows)):
            yield Part(pending, is_split=False)
            pending, pending_rows = [], 0
        if is_split:
            yield from (Part(run, is_split=True) for run, _ in (*full, (rest, rows)))
        else:
            pending, pending_rows = [*pending, *rest], pending_rows + rows
    if pending:
        yield Part(pending, is_split=False)


def _split_channel(buckets: Iterable[BucketInScope]) -> Iterator[tuple[list[BucketInScope], int]]:
    """Yield runs of a channel's buckets, each as large as a part may be, with the rows that are expected in it."""
    run: list[BucketInScope] = []
    run_rows = 0
    for bucket in buckets:
        rows = UNCOUNTED_ROWS if bucket.expected is None else bucket.expected
        if run and not _fits(len(run) + 1, run_rows + rows):
            yield run, run_rows
            run, run_rows = [], 0
        run.append(bucket)
        run_rows += rows
    yield run, run_rows


def _fits(buckets: int, rows: int) -> bool:
    return buckets <= PART_BUCKETS and rows <= PART_ROWS


class Claim(Protocol):
    """What a worker has claimed of a scan. buckets: those that it scans, in the order of the scope."""

    @property
    def purge_id(self) -> int: ...

    @property
    def buckets(self) -> Sequence[BucketInScope]: ...

    def renew(self) -> None:
        """Renew the lease. Raises `ScanLost`."""

    def advance(self, purge: Purge, read: int) -> dict[str, Any]:
        """Move the position past the first `read` buckets; return the values of the purge that are to be updated.

        Called with the purge's row locked. Raises `ScanLost`.
        """

    def finished_channels(self, read: int) -> range:
        """Return the ids of channels of which the scan finds no more once the first `read` buckets are stored."""

    def release(self) -> None:
        """Release the claim, so that another worker continues at once."""

    def retry_later(self, reason: str) -> None:
        """Leave the rest to another attempt, and store the reason for the delay."""


@dataclass(slots=True)
class ClaimAhead:
    """Claim of what is ahead of a scan's position. buckets: the next ones, which its worker scans itself."""

    purge_id: int
    token: uuid.UUID
    buckets: Sequence[BucketInScope] = ()

    def renew(self) -> None:
        if self._own().schedule(scan_lease_until=_lease_end()) != 1:
            raise ScanLost

    def advance(self, purge: Purge, read: int) -> dict[str, Any]:
        if purge.scan_token != self.token:
            raise ScanLost
        return {"scan_lease_until": _lease_end(), **_position(self.buckets[read - 1])}

    def finished_channels(self, read: int) -> range:
        # Of the last one there may be more.
        return range(self.buckets[0].channel_id, self.buckets[read - 1].channel_id)

    def list_parts(self, parts: Sequence[Part]) -> None:
        """Store the next parts of the scope, and release the claim. Raises `ScanLost`."""
        with brief_transaction():
            if lock_purge(self.purge_id).scan_token != self.token:
                raise ScanLost
            ScanPart.objects.bulk_create(
                ScanPart(
                    purge_id=self.purge_id,
                    channel_id=part.buckets[0].channel_id,
                    bucket=part.buckets[0].bucket,
                    buckets=part.buckets,
                    is_split=part.is_split,
                )
                for part in parts
            )
            self._own().schedule(scan_token=None, scan_lease_until=None, **_position(parts[-1].buckets[-1]))

    def release(self) -> None:
        self._own().schedule(scan_token=None, scan_lease_until=None)

    def retry_later(self, reason: str) -> None:
        self._own().update(scan_lease_until=ClockTimestamp() + SCAN_RETRY, wait_reason=reason)

    def _own(self) -> PurgeQuerySet:
        return Purge.objects.filter(id=self.purge_id, scan_token=self.token)


@dataclass(slots=True)
class ClaimedPart:
    """Claim of one part."""

    part: ScanPart
    token: uuid.UUID
    buckets: Sequence[BucketInScope]

    @property
    def purge_id(self) -> int:
        return self.part.purge_id

    def renew(self) -> None:
        if self._own().update(lease_until=_lease_end()) != 1:
            raise ScanLost

    def advance(self, purge: Purge, read: int) -> dict[str, Any]:
        del purge
        left = self.buckets[read:]
        moved = self._own().update(buckets=left, lease_until=_lease_end()) if left else self._own().delete()[0]
        if moved != 1:
            raise ScanLost
        return {}

    def finished_channels(self, read: int) -> range:
        if self.part.is_split:
            return range(0)
        first, last = self.part.channel_id, self.buckets[-1].channel_id
        return range(first, last + 1 if read == len(self.buckets) else self.buckets[read].channel_id)

    def release(self) -> None:
        self._own().update(token=None, lease_until=None)

    def retry_later(self, reason: str) -> None:
        if self._own().update(lease_until=ClockTimestamp() + SCAN_RETRY):
            Purge.objects.filter(id=self.purge_id, state=PurgeState.SCANNING).update(wait_reason=reason)

    def _own(self) -> ScanPartQuerySet:
        return ScanPart.objects.filter(pk=self.part.pk, token=self.token)


def claim_ahead(purge_id: int, token: uuid.UUID) -> bool:
    """Claim what is ahead of the scan's position, unless another worker has it or parts are listed that none has."""
    free = Q(scan_lease_until__isnull=True) | Q(scan_lease_until__lt=ClockTimestamp())
    parts = ScanPart.objects.free().filter(purge_id=OuterRef("id"))
    scans = Purge.objects.filter(free, ~Exists(parts), id=purge_id, state=PurgeState.SCANNING)
    return scans.update(scan_token=token, scan_lease_until=_lease_end(), wait_reason="") == 1


def claim_part(purge_id: int, token: uuid.UUID) -> ClaimedPart | None:
    """Claim the first part that no worker has; None if there is none."""
    with brief_transaction():
        free = ScanPart.objects.free().filter(purge_id=purge_id).select_for_update(skip_locked=True)
        part = free.order_by("channel_id", "bucket").first()
        if part is None:
            return None
        ScanPart.objects.filter(pk=part.pk).update(token=token, lease_until=_lease_end())
    return ClaimedPart(part, token, [BucketInScope(*bucket) for bucket in part.buckets])


def is_shared(purge_id: int) -> bool:
    """Return whether parts of a scan are listed that are not stored yet."""
    return ScanPart.objects.filter(purge_id=purge_id).exists()


def has_free_part(purge_id: int) -> bool:
    """Return whether a part of a scan is listed that no worker has."""
    return ScanPart.objects.free().filter(purge_id=purge_id).exists()


def _position(bucket: BucketInScope) -> dict[str, int]:
    return {"scanned_channel_id": bucket.channel_id, "scanned_bucket": bucket.bucket}


def _lease_end() -> Combinable:
    return ClockTimestamp() + SCAN_LEASE
