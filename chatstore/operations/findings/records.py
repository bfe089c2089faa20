"""Findings: conditions that need attention. Opened once, updated while they last, closed when they end.

A finding about an event (a loss) does not close by itself; an operator acknowledges it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Case, F, Q, When

from chatstore.domain.buckets import format_bucket
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.runs import BUCKET_REPAIR, Severity
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Finding, JobRun
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.findings.channels import MISSING_SURVIVORS, bucket_of_loss, channel_of, store_states
from chatstore.operations.rights import MAINTAIN, require

WRONG_SUMS = "wrong sums"
"""Subject: "<purge>"."""

EVENT_KINDS = frozenset({MISSING_SURVIVORS, WRONG_SUMS})
"""Kinds of findings that record an event instead of a condition."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem found by a check. summary: a sentence for people. details: figures and ids, for links and webhooks."""

    severity: Severity
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)


def open_finding(kind: str, subject: str, found: Problem) -> Finding:
    """Open a finding, or update the open one of the same kind and subject. Idempotent.

    A finding whose severity has risen is reported again.
    """
    with transaction.atomic():
        finding = _open(kind, subject, found)
        store_states([] if finding.channel_id is None else [finding.channel_id])
    return finding


def _open(kind: str, subject: str, found: Problem) -> Finding:
    row = {
        "channel_id": channel_of(kind, subject),
        "severity": found.severity,
        "summary": found.summary,
        "details": dict(found.details),
        "seen_at": ClockTimestamp(),
    }
    is_worse = When(severity__lt=found.severity, then=None)
    notified = {name: Case(is_worse, default=F(name)) for name in ("notified_at", "mailed_at")}
    finding, _was_made = Finding.objects.update_or_create(
        kind=kind,
        subject=subject,
        closed_at=None,
        defaults=row | notified,
        create_defaults=row | {"opened_at": ClockTimestamp()},
    )
    return finding


def sync_findings(
    kind: str, found: Mapping[str, Problem], *, unchecked: Collection[str] = (), among: Q | None = None
) -> None:
    """Make the open findings of a kind match `found`, which maps subjects to problems; others are closed.

    unchecked: subjects that could not be checked; their findings stay as they are. among: a condition for the findings
    that were checked, if not all were; others stay as they are, also those opened meanwhile. Call it only after a check
    of all others of that kind; if a check fails as a whole, leave its findings open.
    """
    with transaction.atomic():
        # In one order, so that two jobs never deadlock.
        opened = [_open(kind, subject, found[subject]) for subject in sorted(found)]
        checked = Finding.objects.open().filter(among or Q(), kind=kind)
        gone = list(checked.exclude(subject__in=[*found, *unchecked]).order_by("subject").select_for_update())
        Finding.objects.filter(pk__in=[finding.pk for finding in gone]).update(closed_at=ClockTimestamp())
        store_states({finding.channel_id for finding in (*opened, *gone) if finding.channel_id is not None})


def acknowledge_finding(finding_id: int, *, actor: User) -> None:
    """Close a finding about an event and record the actor.

    What a repair that is queued or running brings back is still unknown, so its finding stays open. Raises `Forbidden`,
    `NotFound`, `BadInput`.
    """
    require(actor, MAINTAIN)
    finding = Finding.objects.open().filter(pk=finding_id, kind__in=EVENT_KINDS).first()
    if finding is None:
        raise NotFound(_("Finding %(id)s does not exist or cannot be acknowledged.", id=str(finding_id)))
    if finding_repairs([finding]):
        raise BadInput(_("A repair of this bucket is queued or running. Acknowledge the finding when it has ended."))
    details = finding.details | {"acknowledged_by": actor.get_username()}
    with transaction.atomic():
        Finding.objects.open().filter(pk=finding_id).update(details=details, closed_at=ClockTimestamp())
        store_states([] if finding.channel_id is None else [finding.channel_id])


def finding_repairs(findings: Collection[Finding]) -> dict[int, str]:
    """Return, by the ID of each finding of missing messages that a repair may resolve, the state of that repair."""
    subjects = {}
    for finding in findings:
        # Those of another version may have other subjects.
        with suppress(ValueError):
            if (bucket := bucket_of_loss(finding)) is not None:
                subjects[finding.pk] = format_bucket(*bucket)
    if not subjects:
        return {}
    runs = JobRun.objects.open().filter(job=BUCKET_REPAIR, subject__in=set(subjects.values()))
    states = dict(runs.values_list("subject", "state"))
    return {pk: states[subject] for pk, subject in subjects.items() if subject in states}


def open_findings() -> list[Finding]:
    """Return open findings, worst first, then newest first."""
    return list(Finding.objects.open())
