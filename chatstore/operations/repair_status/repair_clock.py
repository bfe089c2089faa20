"""Repair clocks of all tables, from the repair history and the recorded deletes; and the actions on late repairs.

All repairs count, not only those that a job started. The clock of a node may be ahead of the others, so deletes
within `CLOCK_SKEW_SECONDS` before the start of a repair do not count as covered.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence

from django.conf import settings
from django.db.models import Min, QuerySet

from chatstore.domain.buckets import BucketKey
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.repair_clocks import ClockState, RepairClock
from chatstore.domain.runs import Severity
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.domain.token_ranges import covered_since, covered_since_by_table, primary_ranges
from chatstore.models import BucketDeletes
from chatstore.models.cassandra import TABLES
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.jobs.runs import request_automatic_run
from chatstore.store import cassandra, repair_history, repairs, tables

MESSAGES = "messages"

NEVER_DELETED_FROM = frozenset({"bucket_ledger", "bucket_figures", "author_buckets", "withdrawn", "quarantine"})
"""Tables that need no repair because of deletes. Rows of `quarantine` expire on every replica at the same time,
or are erased at consistency level ALL.
"""

LATE_REPAIR = "late repair"

CHECK_INTERVAL_MINUTES = 5
"""Reading the history takes several reads per table, too many for every run of the monitor."""

RAISED_SECONDS = 10 * 86_400
"""Value to which gc_grace is raised until a repair completes: Cassandra's own default."""


class RepairIsLate(StoreUnavailable):
    """Deletes must wait until a repair has completed. Retrying later helps."""


def read_clocks(now: dt.datetime | None = None, *, only_deleted_from: bool = False) -> list[RepairClock]:
    """Return the clock of every table, `messages` first. now: Postgres's clock by default.

    only_deleted_from: without tables that need no repair because of deletes; each takes a read. Raises
    `StoreUnavailable`.
    """
    names = TABLES.keys() - NEVER_DELETED_FROM if only_deleted_from else TABLES.keys()
    return _read_clocks(sorted(names, key=lambda table: (table != MESSAGES, table)), now)


def read_clock(table: str, now: dt.datetime | None = None) -> RepairClock:
    """Return the clock of one table. Raises `StoreUnavailable`."""
    return _read_clocks([table], now)[0]


def _read_clocks(names: Sequence[str], now: dt.datetime | None) -> list[RepairClock]:
    facts = tables.read_tables(names)
    repaired = repaired_by_node(names)
    time = now or postgres_now()
    return [_describe_clock(table, time, facts[table], repaired[table]) for table in names]


def _describe_clock(
    table: str, now: dt.datetime, facts: tables.TableFacts, per_node: Mapping[str, dt.datetime | None]
) -> RepairClock:
    began_at = _first_began_at(per_node)
    is_deleted_from = table not in NEVER_DELETED_FROM and not is_only_copy()
    return RepairClock(
        table=table,
        now=now,
        began_at=began_at,
        per_node=per_node,
        counts_from=_counts_from(table, began_at, facts.created_at) if is_deleted_from else None,
        gc_grace_seconds=facts.gc_grace_seconds,
        normal_gc_grace_seconds=TABLES[table],
        is_deleted_from=is_deleted_from,
        blocks_purges_when_critical=table == MESSAGES,
    )


def repaired_by_node(names: Sequence[str]) -> dict[str, dict[str, dt.datetime | None]]:
    """Return, per table, the start of the last full repair of each node's primary ranges; None: none within 30 days.

    Raises `StoreUnavailable`.
    """
    wanted = primary_ranges(cassandra.ring())
    return covered_since_by_table(dict(sorted(wanted.items())), repair_history.read_repaired_by_table(names))


def last_full_repair_of(table: str) -> dt.datetime | None:
    """Return the start of the last full repair of a table on all nodes, as its clock has it; None: none is known.

    Raises `StoreUnavailable`.
    """
    return _first_began_at(repaired_by_node([table])[table])


def _first_began_at(per_node: Mapping[str, dt.datetime | None]) -> dt.datetime | None:
    known = [time for time in per_node.values() if time is not None]
    return min(known) if known and len(known) == len(per_node) else None


def last_repair_of(channel_id: int, bucket: int) -> dt.datetime | None:
    """Return the start of the last full repair that covered a bucket of messages; None: none within 30 days."""
    key = (channel_id, bucket)
    return last_repairs_of([key])[key]


def last_repairs_of(keys: Collection[BucketKey]) -> dict[BucketKey, dt.datetime | None]:
    """Return `last_repair_of` of several buckets, with one read of the history."""
    tokens = {key: repairs.locate_bucket(*key)[0] for key in keys}
    wanted = {key: [(token - 1, token)] for key, token in tokens.items()}
    return covered_since(wanted, repair_history.read_repaired(MESSAGES))


def covered_until(began_at: dt.datetime) -> dt.datetime:
    """Return the time up to which deletes are covered by a repair begun at `began_at`, whichever clock is ahead."""
    return began_at - dt.timedelta(seconds=settings.CLOCK_SKEW_SECONDS)


def first_uncovered_delete(began_at: dt.datetime | None) -> dt.datetime | None:
    """Return the first delete not covered by a repair that began at `began_at`; None: all are covered."""
    rows = BucketDeletes.objects.all()
    if began_at is None:
        return _first_hour(rows)
    since = covered_until(began_at)
    first = _first_hour(rows.filter(last_at__gte=since))
    # Deletes are recorded by hour; of the hour in which the repair began, only later ones count.
    return None if first is None else max(first, since)


def _first_hour(rows: QuerySet[BucketDeletes]) -> dt.datetime | None:
    first: dt.datetime | None = rows.aggregate(first=Min("hour"))["first"]
    return first


def why_deletes_wait(now: dt.datetime | None = None) -> str:
    """Return why nothing may be deleted from `messages` now; "" if deletes are allowed. Raises `StoreUnavailable`.

    The history is read only if a recorded delete is older than gc_grace.
    """
    if not settings.PURGES_WAIT_FOR_REPAIR:
        return ""
    time = now or postgres_now()
    if _are_all_deletes_recorded():
        first = first_uncovered_delete(None)
        grace = tables.read_table(MESSAGES).gc_grace_seconds
        if first is None or (time - first).total_seconds() < grace:
            return ""
    if read_clock(MESSAGES, time).state != ClockState.CRITICAL:
        return ""
    return _(
        "The last repair of messages is older than gc_grace, so a purge now could restore deleted messages. "
        "It continues after the next repair"
    )


def check_repaired(now: dt.datetime | None = None) -> None:
    """Raise `RepairIsLate` while deletes must wait for a repair, or `StoreUnavailable`."""
    reason = why_deletes_wait(now)
    if reason:
        raise RepairIsLate(reason)


# --- Monitor checks ------------------------------------------------------------------


def check_repairs(now: dt.datetime) -> None:
    """Monitor check: update the findings of late repairs. Raises `StoreUnavailable`."""
    if now.minute % CHECK_INTERVAL_MINUTES == 0:
        report_late_repairs(read_clocks(now))


def report_late_repairs(clocks: Sequence[RepairClock]) -> None:
    """Open and close the findings of late repairs; raise gc_grace automatically if that is enabled."""
    sync_findings(LATE_REPAIR, {clock.table: _describe_late(clock) for clock in clocks if clock.state != ClockState.OK})
    for clock in clocks:
        should_raise = clock.blocks_purges_when_critical and clock.state != ClockState.OK and not clock.is_raised
        if should_raise and settings.GC_GRACE_RAISE_BY_ITSELF:
            request_automatic_run("raise_gc_grace", subject="")


def _describe_late(clock: RepairClock) -> Problem:
    details = {"table": clock.table, "share": round(clock.share, 2)}
    if clock.began_at is None:
        repaired = _("%(table)s has not been repaired.", table=clock.table)
    else:
        repaired = _("%(table)s was last repaired in full on %(time)s.", table=clock.table, time=clock.began_at)
    if clock.state == ClockState.CRITICAL:
        summary = _(
            "%(repaired)s Its deletes have waited longer than gc_grace for a repair. "
            "Purges wait until a repair completes.",
            repaired=repaired,
        )
        return Problem(Severity.CRITICAL, summary, details)
    if clock.hours_left > 0:
        summary = ngettext_lazy(
            "%(repaired)s %(count)s hour of gc_grace is left for deletes that no repair covers. "
            "Repair now, or raise gc_grace.",
            "%(repaired)s %(count)s hours of gc_grace are left for deletes that no repair covers. "
            "Repair now, or raise gc_grace.",
            round(clock.hours_left),
            repaired=repaired,
        )
    else:
        summary = _(
            "%(repaired)s gc_grace has passed for deletes that no repair covers. Repair now, or raise gc_grace.",
            repaired=repaired,
        )
    return Problem(Severity.WARNING, summary, details)


def _counts_from(table: str, began_at: dt.datetime | None, created_at: dt.datetime | None) -> dt.datetime | None:
    if table == MESSAGES and _are_all_deletes_recorded():
        return first_uncovered_delete(began_at)
    # Deletes from this table are not recorded, so they may have happened at any time since.
    return created_at if began_at is None else covered_until(began_at)


def _are_all_deletes_recorded() -> bool:
    """Return whether all deletes of messages are recorded; those of other programs are not."""
    return bool(settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN)


def is_only_copy() -> bool:
    """Return whether there is only one replica, which needs no repair."""
    replication: dict[str, int] = settings.CASSANDRA["replication"]
    return sum(replication.values()) == 1
