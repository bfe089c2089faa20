"""Execution of an approved erasure: the copies are deleted on every replica, then removed from disk.

1. Start: holds are checked a last time, serialized with the placing of holds, and a stamp is stored. From there the
   erasure only moves forward.
2. Each channel is locked while its copies are deleted at that stamp, at ALL, and read at ALL: afterwards they are
   unreadable.
3. A nightly run has every node drop the data that the deletes cover, from `messages` too, where the deleted rows
   remain below their tombstones until then. This has to wait for a full repair of `messages`: a replica that missed a
   delete would not drop the data that it covers.

A crash leaves channels whose copies still exist; they are listed in `channels_left`, and the next worker continues
with them, at the same stamp. Cassandra snapshots and backups are not affected.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from django.conf import settings
from django.db import models
from django.db.models import Max, Q

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import StoreUnavailable, WriteRefused
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.bucket_jobs.compaction import garbage_collect_tables
from chatstore.operations.coordination.channel_lock import lock_channel, lock_owner, release_channel
from chatstore.operations.coordination.clock import postgres_now, stamp_now_us
from chatstore.operations.coordination.leases import renewed
from chatstore.operations.jobs.definitions import job_named, timetable_of
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.repair_status.repair_clock import MESSAGES, covered_until, is_only_copy, last_repairs_of
from moderation.domain.states import DELETING, ErasureDecision, PurgeState
from moderation.models import Erasure, Purge
from moderation.operations.access.audit import record_action
from moderation.operations.holds import block_new_holds, hold_over_purge
from moderation.operations.purging.wait_reasons import describe_blocking_job, waiting_for
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.store.quarantine import erase_quarantined

JOB = "erase"

QUARANTINE = "quarantine"

STAMP_AHEAD_US = 86_400 * 1_000_000
"""The stamp is a day in the future, as long as the deletes are kept. The purge never quarantines anything again, so
copies that a worker suspended in the middle of quarantining still sends are deleted on arrival.
"""

CHANNEL_LEASE_SECONDS = 300.0
"""Lease of the channel lock; deleting the partitions of one channel takes a few milliseconds each."""


def due_erasures() -> list[int]:
    """Return purges with an approved erasure that no worker processes although copies are still readable."""
    due = Erasure.objects.filter(_FREE, decision=ErasureDecision.APPROVED, unreadable_at=None)
    return list(due.order_by("id").values_list("purge_id", flat=True))


def erase_purge(purge_id: int) -> bool:
    """Delete the copies of a purge after the approval; return whether all of them are unreadable now.

    Idempotent at any point. If a replica is down, a clock is off, or another job has locked a channel, the reason is
    stored, and beat enqueues it again.
    """
    try:
        if not begin_erasure(purge_id):
            return False
    except WriteRefused as refused:
        _open(purge_id).update(wait_reason=waiting_for(refused))
        return False
    with renewed(lambda: _open(purge_id).update(lease_until=_lease_end()), every_seconds=_renew_seconds()):
        erasure = _open(purge_id).get()
        reason = ""
        try:
            for channel_id in erasure.channels_left:
                reason = erase_channel(erasure, channel_id) or reason
        except StoreUnavailable as error:
            reason = waiting_for(error)
    _open(purge_id).update(wait_reason=reason, lease_until=None)
    return not reason and end_deleting(purge_id)


def begin_erasure(purge_id: int) -> bool:
    """Claim an erasure and store its stamp if it has none; return whether there is anything to do.

    A hold placed since the approval ends it here: the purge returns to its previous state.
    """
    with brief_transaction():
        purge = lock_purge(purge_id)
        free = _open(purge_id).filter(_FREE)
        erasure = free.select_related("decided_by").first()
        if erasure is None or purge.state != PurgeState.ERASING:
            return False
        if erasure.stamp is None:
            block_new_holds()
            if hold_over_purge(purge) is not None:
                _cancel_for_hold(erasure)
                return False
            free.update(
                stamp=stamp_now_us() + STAMP_AHEAD_US,
                channels_left=sorted(purge.steps.order_by().values_list("channel_id", flat=True).distinct()),
            )
            record_action("erase_started", actor=None, purge=purge, details={"erasure": str(erasure.pk)})
        return bool(_open(purge_id).update(lease_until=_lease_end()))


def erase_channel(erasure: Erasure, channel_id: int) -> str:
    """Delete the purge's copies of one channel; return the reason for a delay, or "". Raises `StoreUnavailable`."""
    if erasure.stamp is None:
        raise ValueError("the erasure has no stamp although it has begun")
    purge_id, job = erasure.purge_id, f"erase:{erasure.purge_id}"
    if not lock_channel(channel_id, job=job, lease_seconds=CHANNEL_LEASE_SECONDS):
        return describe_blocking_job(lock_owner(channel_id) or "")
    try:
        steps = erasure.purge.steps.filter(channel_id=channel_id, kind__in=DELETING).order_by()
        buckets = sorted(steps.values_list("bucket", flat=True).distinct())
        erase_quarantined(purge_id, channel_id, buckets, stamp=erasure.stamp)
    finally:
        release_channel(channel_id, job=job)
    with brief_transaction():
        left = _open(purge_id).select_for_update().get()
        left.channels_left = [other for other in left.channels_left if other != channel_id]
        left.save(update_fields=["channels_left"])
    return ""


def end_deleting(purge_id: int) -> bool:
    """Return whether all copies are unreadable now, and record since when."""
    with brief_transaction():
        purge = lock_purge(purge_id)
        ended = _open(purge_id).filter(stamp__isnull=False, channels_left=[])
        if ended.update(unreadable_at=ClockTimestamp(), lease_until=None, wait_reason=""):
            record_action("erase_unreadable", actor=None, purge=purge)
        return purge.erasures.filter(decision=ErasureDecision.APPROVED, unreadable_at__isnull=False).exists()


def garbage_collect_erased(claim: Claim) -> Mapping[str, int]:
    """Run the job "erase": remove erased data from the files of all nodes: → *erased*.

    Return the number of purges by name.

    Does nothing if nothing was erased. Raises `NodeUnreachable`, `NodetoolFailed`, `StoreUnavailable`.
    """
    waiting = list(
        Erasure.objects.filter(decision=ErasureDecision.APPROVED, unreadable_at__isnull=False, off_disk_at=None)
        .select_related("purge")
        .order_by("id")
    )
    ready = [erasure for erasure in waiting if not _unrepaired_reason(erasure)]
    if ready:
        claim.report_progress(done=0, total=len(ready), what=_("purges: every node rewrites its files"))
        garbage_collect_tables([QUARANTINE, MESSAGES], check=claim.check)
    for erasure in ready:
        _note_off_disk(erasure)
    return {"erased": len(ready), "waiting for a repair": len(waiting) - len(ready)}


def next_run_at() -> dt.datetime | None:
    """Return when that job runs next; None if it is disabled or its schedule is invalid."""
    times = timetable_of(job_named(JOB))
    if times.schedule is None or not times.is_enabled or times.broken:
        return None
    return next((slot.at for slot in times.schedule.next_slots(postgres_now(), 1)), None)


def _unrepaired_reason(erasure: Erasure) -> str:
    """Return why a replica may have missed some of the purge's deletes; "" if none can have.

    Stores it with the erasure.
    """
    last = None if is_only_copy() else _first_unrepaired(erasure.purge)
    reason = "" if last is None else _("Waiting for a full repair of messages that begins after %(time)s", time=last)
    Erasure.objects.filter(pk=erasure.pk).update(wait_reason=reason)
    return reason


def _first_unrepaired(purge: Purge) -> dt.datetime | None:
    """Return when the purge made the first delete that no repair has covered since; None if all are covered."""
    counted = purge.steps.filter(kind__in=DELETING, counted_at__isnull=False).order_by()
    ends = counted.values_list("channel_id", "bucket").annotate(at=Max("counted_at"))
    deleted_at: dict[BucketKey, dt.datetime] = {(channel_id, bucket): at for channel_id, bucket, at in ends}
    for key, began_at in last_repairs_of(deleted_at).items():
        if began_at is None or covered_until(began_at) < deleted_at[key]:
            return deleted_at[key]
    return None


def _note_off_disk(erasure: Erasure) -> None:
    with brief_transaction():
        purge = lock_purge(erasure.purge_id)
        noted = Erasure.objects.filter(pk=erasure.pk, off_disk_at=None).update(
            off_disk_at=ClockTimestamp(), wait_reason=""
        )
        if noted and purge.state == PurgeState.ERASING:
            Purge.objects.filter(id=purge.pk).update(state=PurgeState.ERASED)
            record_action("erased", actor=None, purge=purge, details={"erasure": str(erasure.pk)})


def _cancel_for_hold(erasure: Erasure) -> None:
    Erasure.objects.filter(pk=erasure.pk).update(decision=ErasureDecision.HELD)
    Purge.objects.filter(id=erasure.purge_id).update(state=erasure.previous_state)
    record_action("erase_held", actor=None, purge=erasure.purge, details={"erasure": str(erasure.pk)})


_FREE = Q(lease_until=None) | Q(lease_until__lt=ClockTimestamp())


def _open(purge_id: int) -> models.QuerySet[Erasure]:
    """Return the approved erasure of a purge while some copies are readable."""
    return Erasure.objects.filter(purge_id=purge_id, decision=ErasureDecision.APPROVED, unreadable_at=None)


def _renew_seconds() -> float:
    return float(settings.PURGE_LEASE_RENEW_SECONDS)


def _lease_end() -> models.expressions.Combinable:
    lease = dt.timedelta(seconds=settings.PURGE_LEASE_SECONDS)
    return ClockTimestamp() + lease
