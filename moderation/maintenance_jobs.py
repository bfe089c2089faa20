"""Registers the maintenance jobs and the monitor checks of this app; imported when Django starts."""

from __future__ import annotations

from chatstore.domain.schedules import Schedule
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.findings.monitor_loop import register_checks
from chatstore.operations.jobs.definitions import Job, register_jobs
from moderation.operations.access.audit_archive import archive_entries
from moderation.operations.access.audit_monitoring import check_audit_log, store_anchor
from moderation.operations.erasure.execution import garbage_collect_erased
from moderation.operations.purging.approvals import check_approvals
from moderation.operations.purging.manual_rewrite import rewrite_bucket_run
from moderation.operations.purging.orphan_rows import delete_authorless
from moderation.operations.purging.overdue import check_overdue
from moderation.operations.purging.pruning import prune
from moderation.operations.purging.stuck_check import check_stuck_purges
from moderation.operations.purging.sums_check import check_sums
from moderation.operations.raids.detection import check_raids
from moderation.operations.undo.expiry import close_expired

register_jobs(
    Job("rewrite", rewrite_bucket_run, _("Rewrite"), _("Rewrite a bucket")),
    Job(
        "authorless",
        delete_authorless,
        _("Authorless rows"),
        _("Delete rows that edits left without an author"),
        Schedule("0 6 * * *", "UTC"),
        max_attempts=2,
    ),
    Job(
        "expire",
        close_expired,
        _("Close expired undos"),
        _("Close purges that can no longer be undone"),
        Schedule("30 6 * * *", "UTC"),
        max_attempts=2,
        needs_cassandra=False,
    ),
    Job(
        "erase",
        garbage_collect_erased,
        _("Permanent deletion"),
        _("Remove permanently deleted messages from the disks"),
        # After the repair, which it has to wait for.
        Schedule("0 7 * * *", "UTC"),
        max_attempts=2,
    ),
    Job(
        "prune",
        prune,
        _("Prune"),
        _("Delete old previews, manifests, runs and sessions"),
        Schedule("30 7 * * *", "UTC"),
        max_attempts=2,
        needs_cassandra=False,
    ),
    Job(
        "sums",
        check_sums,
        _("Check sums"),
        _("Compare the stored sums of purges with their steps"),
        Schedule("0 8 * * *", "UTC"),
        max_attempts=2,
        needs_cassandra=False,
    ),
    Job(
        "audit_anchor",
        store_anchor,
        _("Audit anchor"),
        _("Store the newest hash of the audit log outside of the database"),
        Schedule("15 0 * * *", "UTC"),
        max_attempts=3,
        needs_cassandra=False,
    ),
    Job(
        "audit_archive",
        archive_entries,
        _("Audit archive"),
        _("Write old entries of the audit log to signed archive files"),
        Schedule("30 8 * * *", "UTC"),
        max_attempts=2,
        needs_cassandra=False,
    ),
)

register_checks(check_stuck_purges, check_overdue, check_raids, check_approvals, check_audit_log)
