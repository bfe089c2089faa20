"""Findings: what needs a person. Opened once, seen again while it lasts, closed by itself when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp


@dataclass(frozen=True, slots=True)
class Found:
    """What a look saw wrong. words: a sentence for people. details: figures and ids, for links and webhooks."""

    severity: Severity
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)


def open_finding(kind: str, subject: str, found: Found) -> Finding:
    """Opens the finding, or tells the one that is open of what it is like now. Done twice it changes nothing."""
    row = {
        "severity": found.severity,
        "words": found.words,
        "details": dict(found.details),
        "seen_at": ClockTimestamp(),
    }
    finding, _ = Finding.objects.update_or_create(
        kind=kind, subject=subject, closed_at=None, defaults=row, create_defaults={**row, "opened_at": ClockTimestamp()}
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


def open_findings() -> list[Finding]:
    """What is open, worst first, then the latest."""
    return list(Finding.objects.filter(closed_at=None))


def _close(which: Q) -> int:
    closed = Finding.objects.filter(which, closed_at=None).update(closed_at=ClockTimestamp())
    return int(closed)
