"""Monitoring check of what should have ended because of its age, and cannot."""

from __future__ import annotations

import datetime as dt

from chatstore.domain.runs import Severity
from chatstore.domain.texts import Text, ngettext_lazy
from chatstore.operations.findings.records import Problem, sync_findings
from moderation.operations.purging.approvals import END_REQUEST
from moderation.operations.purging.lifecycle import EXPIRE_PREVIEW
from moderation.store.failed_acts import failed_acts

OVERDUE_PREVIEW = "overdue preview"
"""Kind of the finding. Subject: "<purge>:<act>"."""

MIN_ATTEMPTS = 2
"""The first failure may be a passing one."""


def check_overdue(_now: dt.datetime) -> None:
    """Open a finding for each preview that cannot be expired, or whose request for approval cannot be ended.

    Raises `StoreUnavailable`.
    """
    found = {
        f"{purge_id}:{act}": Problem(Severity.WARNING, _describe(act, purge_id, failed.attempts))
        for act in (EXPIRE_PREVIEW, END_REQUEST)
        for purge_id, failed in failed_acts(act).items()
        if failed.attempts >= MIN_ATTEMPTS
    }
    sync_findings(OVERDUE_PREVIEW, found)


def _describe(act: str, purge_id: int, attempts: int) -> Text:
    if act == EXPIRE_PREVIEW:
        return ngettext_lazy(
            "The preview %(purge)s could not be expired in %(count)s attempt. The log of the workers says why.",
            "The preview %(purge)s could not be expired in %(count)s attempts. The log of the workers says why.",
            attempts,
            purge=str(purge_id),
        )
    return ngettext_lazy(
        "The request for approval of purge %(purge)s could not be ended in %(count)s attempt. The log of the workers "
        "says why.",
        "The request for approval of purge %(purge)s could not be ended in %(count)s attempts. The log of the workers "
        "says why.",
        attempts,
        purge=str(purge_id),
    )
