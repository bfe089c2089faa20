"""Findings: what needs a person. Opened once, seen again while it lasts, closed by itself when it is over.

What tells of an event (a loss) is never over by itself: somebody who has looked into it sets it aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, F, Q, When

from chatstore.domain.errors import NotFound
from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.rights import MAINTAIN, require

MISSING_SURVIVORS = "missing survivors"
"""Its subject is "<channel>:<bucket>:<purge>.<step>"."""

EVENTS = frozenset({MISSING_SURVIVORS})
"""Kinds of findings that tell what happened, not how something is."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a look saw wrong. words: a sentence for people. details: figures and ids, for links and webhooks."""

    severity: Severity
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)


def open_finding(kind: str, subject: str, found: Found) -> Finding:
    """Opens the finding, or tells the one that is open of what it is like now. Done twice it changes nothing.

    One that has become worse is news once more.
    """
    row = {
        "severity": found.severity,
        "words": found.words,
        "details": dict(found.details),
        "seen_at": ClockTimestamp(),
    }
    is_worse = When(severity__lt=found.severity, then=None)
    told = {name: Case(is_worse, default=F(name)) for name in ("told_at", "mailed_at")}
    finding, _ = Finding.objects.update_or_create(
        kind=kind,
        subject=subject,
        closed_at=None,
        defaults=row | told,
        create_defaults=row | {"opened_at": ClockTimestamp()},
    )
    return finding


def close_finding(kind: str, subject: str) -> bool:
    """Whether there was one to close."""
    return _close(Q(kind=kind, subject=subject)) > 0


def sync_findings(kind: str, found: Mapping[str, Found]) -> None:
    """Everything that is wrong of a kind now, by subject: what is not among it is over.

    Only for a look that saw everything of its kind; who could not look leaves what is open.
    """
    for subject, one in found.items():
        open_finding(kind, subject, one)
    _close(Q(kind=kind) & ~Q(subject__in=list(found)))


def set_aside(finding_id: int, *, actor: User) -> None:
    """Closes a finding about an event, and notes who did. Raises `Forbidden`, `NotFound`."""
    require(actor, MAINTAIN)
    finding = Finding.objects.filter(pk=finding_id, kind__in=EVENTS, closed_at=None).first()
    if finding is None:
        raise NotFound(f"There is no finding {finding_id} to set aside.")
    details = finding.details | {"set_aside_by": actor.get_username()}
    Finding.objects.filter(pk=finding_id, closed_at=None).update(details=details, closed_at=ClockTimestamp())


def open_findings() -> list[Finding]:
    """What is open, worst first, then the latest."""
    return list(Finding.objects.filter(closed_at=None))


def _close(which: Q) -> int:
    closed = Finding.objects.filter(which, closed_at=None).update(closed_at=ClockTimestamp())
    return int(closed)
