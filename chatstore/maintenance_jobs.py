"""Registers the maintenance jobs and the monitor checks of this app; imported when Django starts."""

from __future__ import annotations

import datetime as dt

from django.conf import settings

from chatstore.domain.runs import BUCKET_REPAIR
from chatstore.domain.schedules import Schedule
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.bucket_jobs.compaction import compact_bucket_run, merge_bucket_run
from chatstore.operations.bucket_jobs.nightly_ledger import reconcile_ledger
from chatstore.operations.bucket_jobs.nightly_repair import repair_run
from chatstore.operations.bucket_jobs.repair import measure_bucket_run, repair_bucket_run
from chatstore.operations.bucket_jobs.verification import verify_bucket_run
from chatstore.operations.findings.monitor_loop import register_checks
from chatstore.operations.health.heavy_buckets import check_heavy_buckets
from chatstore.operations.health.probes import probe_run
from chatstore.operations.health.slow_pages import check_slow_pages
from chatstore.operations.health.summaries import count_uncovered_deletes, refresh_due_summaries
from chatstore.operations.jobs.definitions import Job, register_jobs
from chatstore.operations.monitoring.checks import check_beat, check_nodes, check_runs
from chatstore.operations.repair_status.gc_grace import raise_run, restore_run
from chatstore.operations.repair_status.repair_clock import check_repairs

if settings.LOCAL_CASSANDRA:
    # Laptops sleep at night, so the local stack repairs twice a day.
    REPAIRS = Schedule("30 2,14 * * *", "UTC")
else:
    REPAIRS = Schedule("30 2 * * *", "UTC", dt.time(1), dt.time(6))

register_jobs(
    Job("repair", repair_run, _("Repair"), _("Repair all tables on every node"), REPAIRS, max_attempts=3),
    Job(BUCKET_REPAIR, repair_bucket_run, _("Repair bucket"), _("Repair a bucket")),
    Job("measure", measure_bucket_run, _("Refresh stats"), _("Have the replicas of a bucket measure it")),
    Job("compact", compact_bucket_run, _("Compact"), _("Drop the tombstones of a bucket")),
    Job("merge", merge_bucket_run, _("Merge"), _("Merge the files of a bucket")),
    Job("raise_gc_grace", raise_run, _("Raise gc_grace"), _("Raise gc_grace until a repair has completed")),
    Job("restore_gc_grace", restore_run, _("Restore gc_grace"), _("Set gc_grace back to its normal value")),
    Job(
        "probe",
        probe_run,
        _("Probe"),
        _("Measure the cost of reading messages"),
        # Before the repair: afterwards the deletes that it covers are no longer logged.
        Schedule("30 0 * * *", "UTC"),
        max_attempts=2,
    ),
    Job("verify", verify_bucket_run, _("Check for live rows"), _("Check a bucket for live rows")),
    Job(
        # Runs store this name, so it does not follow the label.
        "bookkeeping",
        reconcile_ledger,
        _("Reconcile ledger"),
        _("Find buckets without live messages, so that readers skip them"),
        Schedule("0 5 * * *", "UTC"),
        max_attempts=2,
    ),
)

register_checks(
    check_runs,
    check_beat,
    check_nodes,
    check_repairs,
    check_heavy_buckets,
    # Near the end: it may take seconds.
    count_uncovered_deletes,
    refresh_due_summaries,
    # Reads what the one before has refreshed.
    check_slow_pages,
)
