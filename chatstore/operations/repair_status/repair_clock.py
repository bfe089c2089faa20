"""Repair clocks of all tables, from the repair history and the deletes that were noted; and what they ask for.

Repairs count whoever began them. A node's clock may be ahead of the others': what was deleted within
`CLOCK_SKEW_SECONDS` before a repair began does not count as covered.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.db.models import Min, QuerySet

from chatstore.domain.datetimes import say_moment
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.repair_clocks import ClockState, RepairClock
from chatstore.domain.runs import Severity
from chatstore.domain.token_ranges import covered_since, primary_ranges
from chatstore.models import BucketDeletes
from chatstore.models.cassandra import TABLES
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Found, sync_findings
from chatstore.operations.jobs.runs import ask_by_itself
from chatstore.store import cassandra, repair_history, repairs, tables

MESSAGES = "messages"

NEVER_DELETED_FROM = frozenset({"bucket_ledger", "bucket_figures", "author_buckets", "withdrawn", "quarantine"})
"""Rows of quarantine end by themselves, on every replica at the same moment, or are erased at ALL: no repair is
needed for that."""

LATE_REPAIR = "late repair"

LOOK_EVERY_MINUTES = 5
"""The history is some reads a table: not for each round of the watch."""

RAISED_SECONDS = 10 * 86_400
"""To what gc_grace is raised until a repair passes: Cassandra's own default."""


class RepairIsLate(StoreUnavailable):
    """Deletes wait until a repair has passed. Trying again later helps."""


def read_clocks(now: dt.datetime | None = None) -> list[RepairClock]:
    """The clock of every table, `messages` first. now: Postgres's, unless it is shifted.

    Raises `StoreUnavailable`.
    """
    return [read_clock(table, now) for table in sorted(TABLES, key=lambda table: (table != MESSAGES, table))]


def read_clock(table: str, now: dt.datetime | None = None) -> RepairClock:
    """The clock of one table. Raises `StoreUnavailable`."""
    facts = tables.read_table(table)
    per_node = repaired_by_node(table)
    known = [moment for moment in per_node.values() if moment is not None]
    began_at = min(known) if known and len(known) == len(per_node) else None
    is_deleted_from = table not in NEVER_DELETED_FROM and not is_only_copy()
    return RepairClock(
        table=table,
        now=now or postgres_now(),
        began_at=began_at,
        per_node=per_node,
        counts_from=_counts_from(table, began_at, facts.created_at) if is_deleted_from else None,
        gc_grace_seconds=facts.gc_grace_seconds,
        normal_gc_grace_seconds=TABLES[table],
        is_deleted_from=is_deleted_from,
        waits_at_red=table == MESSAGES,
    )


def repaired_by_node(table: str) -> dict[str, dt.datetime | None]:
    """When the last full repair of all that each node repairs first began; None: not within 30 days."""
    found = covered_since(primary_ranges(cassandra.ring()), repair_history.read_repaired(table))
    return dict(sorted(found.items()))


def last_repair_of(channel_id: int, bucket: int) -> dt.datetime | None:
    """When the last full repair began that covered a bucket of messages; None: none within 30 days."""
    return last_repairs_of(channel_id, [bucket])[bucket]


def last_repairs_of(channel_id: int, buckets: Sequence[int]) -> dict[int, dt.datetime | None]:
    """The same of several buckets of a channel, with one reading of the history."""
    tokens = {bucket: repairs.locate_bucket(channel_id, bucket)[0] for bucket in buckets}
    found: dict[int, dt.datetime | None] = dict.fromkeys(buckets)
    for repaired in repair_history.read_repaired(MESSAGES):
        for bucket in [bucket for bucket, moment in found.items() if moment is None]:
            if repaired.has(tokens[bucket]):
                found[bucket] = repaired.began_at
        if all(found.values()):
            break
    return found


def surely_before(began_at: dt.datetime) -> dt.datetime:
    """Up to when deletes are covered by a repair that began then, whichever clock is ahead."""
    return began_at - dt.timedelta(seconds=settings.CLOCK_SKEW_SECONDS)


def first_uncovered_delete(began_at: dt.datetime | None) -> dt.datetime | None:
    """The first delete that a repair which began then does not cover; None: it covers all that were noted."""
    rows = BucketDeletes.objects.all()
    if began_at is None:
        return _first_hour(rows)
    since = surely_before(began_at)
    first = _first_hour(rows.filter(last_at__gte=since))
    # Noted by the hour: of the one in which the repair began, only what came after it.
    return None if first is None else max(first, since)


def _first_hour(rows: QuerySet[BucketDeletes]) -> dt.datetime | None:
    first: dt.datetime | None = rows.aggregate(first=Min("hour"))["first"]
    return first


def why_deletes_wait(now: dt.datetime | None = None) -> str:
    """Why nothing may be deleted from `messages` now; "" when it may be. Raises `StoreUnavailable`.

    The history is read only when a delete that was noted is older than gc_grace.
    """
    if not settings.PURGES_WAIT_FOR_REPAIR:
        return ""
    moment = now or postgres_now()
    if _are_deletes_all_ours():
        first = first_uncovered_delete(None)
        grace = tables.read_table(MESSAGES).gc_grace_seconds
        if first is None or (moment - first).total_seconds() < grace:
            return ""
    if read_clock(MESSAGES, moment).state != ClockState.RED:
        return ""
    return (
        "the last repair of messages is older than gc_grace: a purge now could bring deleted messages back. "
        "It goes on when a repair has passed"
    )


def check_repaired(now: dt.datetime | None = None) -> None:
    """Raises `RepairIsLate` while deletes must wait for a repair, `StoreUnavailable`."""
    reason = why_deletes_wait(now)
    if reason:
        raise RepairIsLate(reason)


# --- What the watch does -------------------------------------------------------------


def look_at_repairs(now: dt.datetime) -> None:
    """A look of the watch: tables whose repair is late. Raises `StoreUnavailable`."""
    if now.minute % LOOK_EVERY_MINUTES == 0:
        judge_clocks(read_clocks(now))


def judge_clocks(clocks: Sequence[RepairClock]) -> None:
    """Opens and closes the findings of late repairs, and has gc_grace raised by itself, where that is set."""
    sync_findings(LATE_REPAIR, {clock.table: _say_late(clock) for clock in clocks if clock.state != ClockState.GREEN})
    for clock in clocks:
        is_asked = clock.waits_at_red and clock.state != ClockState.GREEN and not clock.is_raised
        if is_asked and settings.GC_GRACE_RAISE_BY_ITSELF:
            ask_by_itself("raise_gc_grace", subject="")


def _say_late(clock: RepairClock) -> Found:
    details = {"table": clock.table, "share": round(clock.share, 2)}
    since = "has not been repaired" if clock.began_at is None else "was last repaired in full"
    when = "" if clock.began_at is None else f" on {say_moment(clock.began_at)}"
    if clock.state == ClockState.RED:
        words = (
            f"{clock.table} {since}{when}, and its deletes have waited longer than gc_grace for a repair: "
            "purges wait until one has passed."
        )
        return Found(Severity.RED, words, details)
    left = f"{clock.hours_left:.0f} hours of gc_grace are left" if clock.hours_left > 0 else "gc_grace is over"
    words = f"{clock.table} {since}{when}, and {left} for deletes that no repair covers. Repair now, or raise gc_grace."
    return Found(Severity.AMBER, words, details)


def _counts_from(table: str, began_at: dt.datetime | None, created_at: dt.datetime | None) -> dt.datetime | None:
    if table == MESSAGES and _are_deletes_all_ours():
        return first_uncovered_delete(began_at)
    # Nobody notes when something was deleted here: at any time since.
    return created_at if began_at is None else surely_before(began_at)


def _are_deletes_all_ours() -> bool:
    """Whether all deletes of messages are noted; other programs' are not."""
    return bool(settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN)


def is_only_copy() -> bool:
    """One replica can't have missed what another one knows: there is nothing to repair."""
    replication: dict[str, int] = settings.CASSANDRA["replication"]
    return sum(replication.values()) == 1
