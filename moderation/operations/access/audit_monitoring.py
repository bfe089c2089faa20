"""Monitoring of the audit log: entries that stay unlinked, rights to change it, and the nightly anchor."""

from __future__ import annotations

import datetime as dt
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.db import connection

from chatstore.domain.runs import Severity
from chatstore.domain.texts import Duration, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.findings.notifications import post_to_webhook
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.jobs.runs import Claim
from moderation.models import AuditEntry, AuditLink
from moderation.operations.access.audit_chain import Anchor, link_entries, newest_anchor, unlinked_tail

logger = logging.getLogger(__name__)

UNLINKED_ENTRIES, CHANGEABLE_AUDIT_LOG = "unlinked audit entries", "changeable audit log"

UNLINKED_AFTER = dt.timedelta(minutes=10)
"""Age from which on an entry without a link is reported. Beat has them linked every ten seconds."""


def check_audit_log(now: dt.datetime) -> None:
    """Check that entries are linked within minutes, and that Postgres refuses to change them."""
    tail = unlinked_tail()
    summary = ngettext_lazy(
        "%(count)s entry of the audit log is not in the hash chain yet; the oldest was made %(time)s ago.",
        "%(count)s entries of the audit log are not in the hash chain yet; the oldest was made %(time)s ago.",
        tail.count,
        time=Duration((now - tail.oldest).total_seconds() if tail.oldest else 0),
    )
    sync_findings(UNLINKED_ENTRIES, {"audit": Problem(Severity.WARNING, summary)} if is_late(tail.oldest, now) else {})
    problems: dict[str, Problem] = {}
    if may_change_audit_log():
        problems["audit"] = Problem(Severity.WARNING, _("The application’s role in Postgres may change the audit log."))
    if not has_triggers():
        problems["triggers"] = Problem(
            Severity.CRITICAL, _("Triggers that protect the audit log are missing or disabled in Postgres.")
        )
    sync_findings(CHANGEABLE_AUDIT_LOG, problems)


def is_late(made_at: dt.datetime | None, now: dt.datetime) -> bool:
    """Return whether an entry of that time that has no link is reported; False for None."""
    return made_at is not None and now - made_at > UNLINKED_AFTER


def may_change_audit_log() -> bool:
    """Return whether the role of this connection has more rights than to insert and read."""
    with connection.cursor() as cursor:
        for model in (AuditEntry, AuditLink):
            cursor.execute(
                "SELECT has_any_column_privilege(%s, 'UPDATE') OR has_table_privilege(%s, 'DELETE') "
                "OR has_table_privilege(%s, 'TRUNCATE')",
                [model._meta.db_table] * 3,
            )
            if cursor.fetchone() == (True,):
                return True
    return False


def has_triggers() -> bool:
    """Return whether the triggers that refuse changes, and the one that queues entries for the chain, are enabled."""
    wanted = {
        (AuditEntry._meta.db_table, "audit_is_append_only"),
        (AuditEntry._meta.db_table, "audit_queue"),
        (AuditLink._meta.db_table, "audit_is_append_only"),
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
            "WHERE tgrelid = ANY(ARRAY[to_regclass(%s), to_regclass(%s)]::oid[]) AND tgenabled IN ('O', 'A')",
            [AuditEntry._meta.db_table, AuditLink._meta.db_table],
        )
        return wanted <= set(cursor.fetchall())


def store_anchor(claim: Claim) -> Mapping[str, int]:
    """Run the job "audit_anchor": link what is left, then store the newest hash outside of the database."""
    linked = 0
    while count := link_entries():
        linked += count
        claim.check()
    anchor = newest_anchor()
    if anchor is None:
        return {"linked": linked}
    logger.info("audit chain: position %s has the hash %s", anchor.position, anchor.hash)
    if settings.AUDIT_ANCHOR_PATH:
        _append(Path(settings.AUDIT_ANCHOR_PATH), anchor)
    if settings.FINDINGS_WEBHOOK_URL:
        text = f"Chatstore: the audit log has {anchor.position:,} entries, newest hash {anchor.hash}"
        post_to_webhook({"text": text, "audit_position": anchor.position, "audit_hash": anchor.hash})
    return {"linked": linked, "entries": anchor.position}


def _append(path: Path, anchor: Anchor) -> None:
    """Append a line, which is on disk afterwards."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{anchor.as_json()}\n")
        file.flush()
        os.fsync(file.fileno())
