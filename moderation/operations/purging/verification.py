"""Verification of deletes: each bucket is read as a whole, and what still exists is deleted again by row."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from django.conf import settings

from chatstore.domain.messages import MESSAGE_ID
from chatstore.domain.whole_reads import WholeRead
from chatstore.operations.coordination.clock import stamp_now_us
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.operations.ledger.tombstones import known_tombstones
from chatstore.store import scans
from chatstore.store.messages import SCAN_FETCH
from moderation.domain.packing import unpack_ids
from moderation.domain.planner import MAX_ROW_DELETES
from moderation.domain.states import StepKind
from moderation.models import Step
from moderation.operations.purging.quarantine import quarantine_key
from moderation.operations.steps.claiming import StepLost, brief_transaction, check_still_claimed
from moderation.store import deletes
from moderation.store.pace import Pace
from moderation.store.quarantine import WantedRows, quarantine_rows

VERIFY_ATTEMPTS = 3
"""Number of times that reappeared messages are deleted again before they count as failed."""


@dataclass(frozen=True, slots=True)
class VerificationRead:
    """Verification read: ids of the manifest that still exist, and the contents of the bucket.

    missing: ids that the step rewrote and that do not exist. is_estimate: the tombstones were not counted, they are the
    most that there can be. again: number of rows that earlier attempts deleted
    again.
    """

    read: WholeRead
    remaining: Sequence[int]
    missing: Collection[int]
    tombstones: int
    is_estimate: bool = False
    again: int = 0


def verify_steps(steps: Sequence[Step], pace: Pace) -> dict[Step, VerificationRead]:
    """Read the buckets of steps, delete again what still exists, and return the last read of each.

    Without the steps that this worker has lost. Raises `StoreUnavailable`.
    """
    verified: dict[Step, VerificationRead] = {}
    for step, verification in _read_buckets(steps, pace).items():
        with suppress(StepLost):
            verified[step] = _delete_again(step, verification, pace)
    return verified


def _delete_again(step: Step, verification: VerificationRead, pace: Pace) -> VerificationRead:
    for _ in range(VERIFY_ATTEMPTS):
        if not verification.remaining:
            break
        # Written or edited since the read: quarantined under a separate attempt, then deleted by row.
        with brief_transaction():
            check_still_claimed(step)
            attempt = issue_stamp(step.channel_id, step.bucket)
        wanted = WantedRows(quarantine_key(step, attempt), verification.remaining)
        quarantine_rows([wanted])
        # Check after the read: if the step had been taken over and counted before it, these could be
        # rows that an undo restored. If it is taken over from here on, the rows were read in time.
        with brief_transaction():
            check_still_claimed(step)
        rows = [(message_id, writetime) for message_id, writetime, _ in wanted.seen]
        deletes.delete_rows(step.channel_id, step.bucket, [rows], pace=pace)
        again = verification.again + len(rows)
        verification = replace(_read_buckets([step], pace)[step], again=again)
    return verification


def _read_buckets(steps: Sequence[Step], pace: Pace) -> dict[Step, VerificationRead]:
    estimates = _estimate_tombstones(steps)
    # A statement can read several small buckets, but then the tombstones of none of them can be counted.
    together = {step: most for step, most in estimates.items() if len(estimates) > 1}
    began_us = stamp_now_us()
    verified = _read_together(together, began_us)
    alone = [step for step in steps if step not in together]
    read = [_read_bucket(step, pages, began_us, pace) for step, pages in _request_ahead(alone, estimates)]
    tombstones = scans.count_tombstones([pages for pages, _ in read])
    for step, (_, verification), counted in zip(alone, read, tombstones, strict=True):
        verified[step] = replace(verification, tombstones=counted, is_estimate=step in estimates)
    return verified


def _read_together(estimates: Mapping[Step, int], began_us: int) -> dict[Step, VerificationRead]:
    """Read the buckets of row steps, several per statement. estimates: the most tombstones of each."""
    by_bucket = {(step.channel_id, step.bucket): step for step in estimates}
    reads = {step: WholeRead(began_us) for step in estimates}
    remaining: dict[Step, list[int]] = {step: [] for step in estimates}
    ids = {step: frozenset(unpack_ids(step.ids)) for step in estimates}
    for key, rows in scans.read_ids_in(by_bucket):
        step = by_bucket[key]
        reads[step].add(rows)
        remaining[step].extend(ids[step].intersection(row[MESSAGE_ID] for row in rows))
    return {
        step: VerificationRead(reads[step], sorted(remaining[step]), (), tombstones=most, is_estimate=True)
        for step, most in estimates.items()
    }


def _estimate_tombstones(steps: Sequence[Step]) -> dict[Step, int]:
    """Return the most tombstones that buckets of row steps can have, where these are few and the earlier ones known.

    Counting them takes three times as long as the read itself, for the servers.
    """
    row_steps = [step for step in steps if step.kind == StepKind.ROWS and step.count <= MAX_ROW_DELETES]
    alone = _alone_in_bucket(row_steps)
    known = known_tombstones([(step.channel_id, step.bucket) for step in alone]) if alone else {}
    found = {step: known[key] + step.count for step in alone if (key := (step.channel_id, step.bucket)) in known}
    return {step: most for step, most in found.items() if most <= settings.PURGE_TOMBSTONE_BUDGET // 2}


def _alone_in_bucket(steps: Sequence[Step]) -> list[Step]:
    """Return the steps whose purge has no other step in the bucket: its deletes may not be recorded yet."""
    if not steps:
        return []
    here = Step.objects.in_buckets([(step.channel_id, step.bucket) for step in steps])
    keys = here.filter(purge_id=steps[0].purge_id).order_by().values_list("channel_id", "bucket")
    numbers = Counter(keys)
    return [step for step in steps if numbers[step.channel_id, step.bucket] == 1]


def _request_ahead(steps: Sequence[Step], estimates: Mapping[Step, int]) -> Iterator[tuple[Step, scans.BucketPages]]:
    in_flight: deque[tuple[Step, scans.BucketPages]] = deque()
    for step in steps:
        if len(in_flight) == scans.WHOLE_READS_AHEAD:
            yield in_flight.popleft()
        fetch = scans.SMALL_FETCH if len(steps) > 1 else SCAN_FETCH
        pages = scans.read_all_ids(step.channel_id, step.bucket, known_tombstones=estimates.get(step), fetch_size=fetch)
        in_flight.append((step, pages))
    yield from in_flight


def _read_bucket(
    step: Step, pages: scans.BucketPages, began_us: int, pace: Pace
) -> tuple[scans.BucketPages, VerificationRead]:
    read = WholeRead(began_us)
    ids = frozenset(unpack_ids(step.ids) if step.kind != StepKind.REWRITE else ())
    remaining: list[int] = []
    missing = set(unpack_ids(step.survivors))
    for page in pages:
        read.add(page)
        there = [row[MESSAGE_ID] for row in page]
        remaining.extend(ids.intersection(there))
        missing.difference_update(there)
        if step.kind != StepKind.ROWS:
            # Row steps are not throttled: a raid must be deleted immediately.
            pace.throttle()
    return pages, VerificationRead(read, sorted(remaining), missing, tombstones=0)
