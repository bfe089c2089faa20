"""gc_grace of `messages`: raised when a repair is late, so that no tombstone is dropped before every replica has it.

Raising it only helps before it has passed. Because tombstones then stay on disk longer, it is restored after
the next repair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatstore.domain.errors import BadInput
from chatstore.domain.repair_clocks import RepairClock
from chatstore.domain.runs import RunState
from chatstore.domain.texts import Duration, as_json
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import JobRun
from chatstore.models.cassandra import TABLES
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.repair_status.repair_clock import MESSAGES, RAISED_SECONDS, read_clock
from chatstore.store import tables

RAISE, RESTORE = "raise_gc_grace", "restore_gc_grace"


def raise_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "raise_gc_grace": raise to ten days. Raises `StoreUnavailable`, `BadInput` if it already is."""
    claim.check()
    before = tables.read_table(MESSAGES).gc_grace_seconds
    if before >= RAISED_SECONDS:
        raise BadInput(_("gc_grace of %(table)s is already %(time)s.", table=MESSAGES, time=Duration(before)))
    return _change(RAISED_SECONDS, before=before)


def restore_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "restore_gc_grace": restore the value that the table is declared with.

    Raises `StoreUnavailable`, `BadInput` while that would drop tombstones that no repair covers.
    """
    claim.check()
    clock = read_clock(MESSAGES)
    if not clock.is_raised:
        raise BadInput(
            _(
                "gc_grace of %(table)s is %(time)s, its declared value.",
                table=MESSAGES,
                time=Duration(clock.gc_grace_seconds),
            )
        )
    if not clock.would_be_ok:
        raise BadInput(_("Some deletes that no repair covers are older than the declared gc_grace. Repair first."))
    return _change(TABLES[MESSAGES], before=clock.gc_grace_seconds)


def restore_after_repair(clock: RepairClock) -> bool:
    """Restore gc_grace if the job raised it and a repair covers enough; return whether it was restored.

    Raises `StoreUnavailable`.
    """
    if not (clock.gc_grace_seconds == RAISED_SECONDS and clock.is_raised and clock.would_be_ok):
        return False
    changes = JobRun.objects.filter(job__in=(RAISE, RESTORE), state=RunState.DONE)
    last = changes.order_by("-ended_at", "-id").first()
    # If an operator raised it by hand, the reason is unknown.
    if last is None or last.job != RAISE:
        return False
    tables.set_gc_grace(clock.table, clock.normal_gc_grace_seconds)
    return True


def _change(seconds: int, *, before: int) -> dict[str, Any]:
    tables.set_gc_grace(MESSAGES, seconds)
    return {"was": as_json(Duration(before)), "is": as_json(Duration(seconds))}
