"""Scan: finds the messages that a selection matches, freezes them as the manifest, and plans the deletes.

The store is not changed. Workers share a scan by claims (`moderation.operations.preview.scan_parts`). The buckets that
were frozen and the position of their claim are stored together, so that an interrupted scan continues where it was. The
worker that finds nothing left to scan, and no part that another one has, freezes the manifest.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from typing import TypeVar

from django.db import connection
from django.db.models import Max, Sum

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import StoreUnavailable, TooManyTombstones
from chatstore.domain.milliseconds import time_at
from chatstore.domain.snowflakes import ms_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.coordination.leases import renewed
from moderation.domain.packing import hash_bucket
from moderation.domain.planner import RECENT_MS
from moderation.domain.selection import Selection
from moderation.domain.sketches import step_columns
from moderation.domain.states import PurgeState, StepKind
from moderation.models import ManifestBucket, Purge, Step
from moderation.operations.access.visibility import NO_GUILD
from moderation.operations.preview.bucket_reads import RENEW_SECONDS, ScannedBucket, scan_buckets
from moderation.operations.preview.manifest_summary import compute_summary, store_summary
from moderation.operations.preview.matching import Matcher
from moderation.operations.preview.scan_parts import (
    PARTS_AHEAD,
    Claim,
    ClaimAhead,
    Part,
    ScanLost,
    claim_ahead,
    claim_part,
    has_free_part,
    is_shared,
    split_scope,
)
from moderation.operations.preview.scan_places import add_to_places
from moderation.operations.purging.lifecycle import expire_scan
from moderation.operations.purging.wait_reasons import waiting_for
from moderation.operations.selection.scope import (
    MAX_CHANNELS_OF_PURGE,
    BucketInScope,
    buckets_in_scope,
    is_reduced,
    reach_of,
)
from moderation.operations.steps.claiming import brief_transaction, lock_purge

FIRST_BUCKETS = 16
"""Buckets that are scanned before any others, so that the first counts and matches appear at once."""

OTHERS_CHECKED_SECONDS = 0.25
"""Interval at which a command checks whether the workers that share its scan have ended it."""

ItemT = TypeVar("ItemT")


def scan_purge(
    purge_id: int, *, ends_turn: Callable[[], bool] = lambda: False, on_shared: Callable[[], None] = lambda: None
) -> None:
    """Scan and freeze: *scanning* → *ready* or *nothing_matched*.

    Returns when nothing is left that no other worker has claimed. ends_turn: called whenever buckets were frozen; if
    true, the rest is left for another turn. on_shared: called when parts were listed that other workers may process.

    Raises `StoreUnavailable`; what was claimed is retried a few seconds later.
    """
    worker = _ScanWorker(purge_id, ends_turn, on_shared)
    with suppress(ScanLost):
        while worker.scan_next():
            pass


def scan_to_end(purge_id: int) -> None:
    """Scan and freeze, and wait for other workers that share the scan. Raises `StoreUnavailable`."""
    scan_purge(purge_id)
    while Purge.objects.filter(id=purge_id, state=PurgeState.SCANNING).exists():
        time.sleep(OTHERS_CHECKED_SECONDS)
        scan_purge(purge_id)


class _ScanWorker:
    """A worker at a scan, for one turn."""

    def __init__(self, purge_id: int, ends_turn: Callable[[], bool], on_shared: Callable[[], None]) -> None:
        self._purge_id, self._ends_turn, self._on_shared = purge_id, ends_turn, on_shared
        self._token = uuid.uuid4()
        # The parts that are ahead, and the position that they begin after.
        self._ahead: Iterator[Part] = iter(())
        self._ahead_after: BucketKey | None = None

    def scan_next(self) -> bool:
        """Claim and scan what comes next; return whether to go on."""
        if claim_ahead(self._purge_id, self._token):
            claim = ClaimAhead(self._purge_id, self._token)
            with _retried(claim):
                return self._scan_ahead(claim)
        part = claim_part(self._purge_id, self._token)
        if part is None:
            return False
        with _retried(part):
            return self._scan(part)

    @cached_property
    def _selection(self) -> Selection:
        return Selection.from_json(Purge.objects.values_list("selection", flat=True).get(id=self._purge_id))

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._selection)

    def _scan_ahead(self, claim: ClaimAhead) -> bool:
        """Scan what is ahead or list it in parts; if there is nothing, freeze the manifest unless parts are left."""
        if not self._read_position(claim):
            return False
        parts = _take(claim, self._ahead, PARTS_AHEAD)
        if len(parts) > 1:
            claim.list_parts(parts)
            self._ahead_after = _key_of(parts[-1].buckets[-1])
            self._on_shared()
            return True
        if parts and not self._scan_here(claim, parts[0].buckets):
            return False
        if is_shared(self._purge_id):
            claim.release()
            # If the last one was stored meanwhile, its worker could not claim what is ahead.
            return has_free_part(self._purge_id) or not is_shared(self._purge_id)
        _freeze_manifest(self._purge_id, self._token, selection=self._selection)
        return False

    def _read_position(self, claim: ClaimAhead) -> bool:
        """Read where the scan is; at its beginning, scan the first buckets. Return whether to go on."""
        purge = Purge.objects.select_related("moderator").get(id=self._purge_id)
        self._selection = Selection.from_json(purge.selection)
        position = purge.scanned_to
        if position is not None and position == self._ahead_after:
            return True
        if is_reduced(self._selection, purge.moderator):
            # Otherwise a part of the scope would be missing in what its page calls all of it.
            expire_scan(self._purge_id, cause=_("Its moderator may no longer delete everywhere in its scope."))
            raise ScanLost
        buckets = buckets_in_scope(self._selection, purge.moderator, after=position)
        if position is not None:
            self._ahead_after = position
            self._ahead = split_scope(buckets, split=position[0] if is_shared(self._purge_id) else None)
            return True
        first = _take(claim, buckets, FIRST_BUCKETS)
        self._ahead = split_scope(buckets)
        return not first or self._scan_here(claim, first)

    def _scan_here(self, claim: ClaimAhead, buckets: Sequence[BucketInScope]) -> bool:
        claim.buckets = buckets
        self._ahead_after = _key_of(buckets[-1])
        return self._scan(claim)

    def _scan(self, claim: Claim) -> bool:
        """Scan the claimed buckets and store what is found; return whether the turn goes on."""
        for read, found in scan_buckets(self._selection, claim.buckets, matcher=self._matcher, renew=claim.renew):
            _freeze(claim, read, found)
            if self._ends_turn():
                claim.release()
                return False
        return True


def _take(claim: Claim, ahead: Iterator[ItemT], number: int) -> list[ItemT]:
    """Return the next ones of what is ahead, with the claim renewed meanwhile.

    To find them, the ledgers of a hundred thousand channels may have to be read.
    """

    def renew() -> None:
        # What is stored next raises it.
        with suppress(ScanLost):
            claim.renew()

    with renewed(renew, every_seconds=RENEW_SECONDS):
        return list(islice(ahead, number))


def _key_of(bucket: BucketInScope) -> BucketKey:
    return bucket.channel_id, bucket.bucket


@contextmanager
def _retried(claim: Claim) -> Iterator[None]:
    """Leave what was claimed to another attempt if the store is unavailable."""
    try:
        yield
    except (StoreUnavailable, TooManyTombstones) as unavailable:
        claim.retry_later(waiting_for(unavailable))
        raise


def _freeze(claim: Claim, read: int, found: Sequence[ScannedBucket]) -> None:
    """Store what was found in the first buckets of a claim, with its position. Raises `ScanLost`."""
    purge_id = claim.purge_id
    # Hundreds of buckets take as long to pack and hash as to store: not while the purge is locked.
    rows = prepare_buckets(purge_id, [bucket for bucket in found if bucket.matched])
    with brief_transaction():
        purge = lock_purge(purge_id)
        if purge.state != PurgeState.SCANNING:
            raise ScanLost
        position = claim.advance(purge, read)
        Purge.objects.filter(id=purge_id).update(
            scanned=purge.scanned + sum(bucket.scanned for bucket in found),
            manifest=purge.manifest + sum(len(bucket.matched) for bucket in found),
            held_at_scan=purge.held_at_scan + sum(bucket.held_at_scan for bucket in found),
            wait_reason="",
            **position,
        )
        add_to_places(purge_id, rows[0], finished=claim.finished_channels(read))
        store_buckets(purge_id, rows)


def prepare_buckets(purge_id: int, scanned: Sequence[ScannedBucket]) -> tuple[list[ManifestBucket], list[Step]]:
    """Return buckets of the manifest, and their steps without ordinals, for `store_buckets`."""
    steps = [step for bucket in scanned for step in _steps_of(purge_id, bucket)]
    return [_manifest_bucket(purge_id, bucket) for bucket in scanned], steps


def store_buckets(purge_id: int, rows: tuple[list[ManifestBucket], list[Step]]) -> None:
    """Store buckets and their steps, with the next ordinals; the transaction has locked the purge's row."""
    buckets, steps = rows
    if not steps:
        return
    last = Step.objects.filter(purge_id=purge_id).aggregate(last=Max("ordinal", default=0))["last"]
    for ordinal, step in enumerate(steps, last + 1):
        step.ordinal = ordinal
    ManifestBucket.objects.bulk_create(buckets)
    Step.objects.bulk_create(steps)


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


_MATCHED_PLACES = f"""SELECT array_agg(DISTINCT coalesce(channel.guild_id, {NO_GUILD})),
    (array_agg(DISTINCT manifest.channel_id))[1:{MAX_CHANNELS_OF_PURGE + 1}]
    FROM {ManifestBucket._meta.db_table} AS manifest
    LEFT JOIN {Channel._meta.db_table} AS channel ON channel.id = manifest.channel_id WHERE purge_id = %s"""


def matched_places(purge_id: int) -> tuple[list[int], list[int]]:
    """Return the guilds of the messages in a manifest, and its channels: at most one more than are stored."""
    with connection.cursor() as cursor:
        cursor.execute(_MATCHED_PLACES, [purge_id])
        guild_ids, channel_ids = cursor.fetchone()
    return guild_ids or [], channel_ids or []


def _places_of(purge_id: int, selection: Selection) -> dict[str, list[int] | None]:
    """Return the guilds and channels of a scanned purge; nothing if they are those of its draft."""
    if selection.only_channel_id is not None:
        return {}
    matched, channels = matched_places(purge_id)
    if not matched:
        return {}
    guild_ids, channel_ids = reach_of(selection, matched, channels)
    return {"guild_ids": guild_ids, "channel_ids": channel_ids, "manifest_guild_ids": matched}


def _freeze_manifest(purge_id: int, token: uuid.UUID, *, selection: Selection) -> None:
    manifest_hash = hash_manifest(purge_id)
    total: int = Step.objects.filter(purge_id=purge_id).aggregate(total=Sum("count", default=0))["total"]
    # Another worker that has taken over the scan stores its own.
    summary = compute_summary(purge_id)
    places = _places_of(purge_id, selection)
    with brief_transaction():
        is_own = Purge.objects.filter(id=purge_id, scan_token=token, state=PurgeState.SCANNING).update(
            state=PurgeState.READY if total else PurgeState.NOTHING_MATCHED,
            manifest=total,
            manifest_hash=manifest_hash,
            ready_at=ClockTimestamp(),
            scan_token=None,
            scan_lease_until=None,
            **places,
        )
        # Only with the purge's row locked: an exclusion stores another summary.
        if is_own:
            store_summary(purge_id, summary)


def _end_of_hour(message_id: int) -> dt.datetime:
    return time_at(ms_of(message_id) + RECENT_MS)
