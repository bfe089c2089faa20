"""Closing of one finding, as if the check that opened it no longer reported it."""

from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp


def close_finding(kind: str, subject: str) -> None:
    assert Finding.objects.filter(kind=kind, subject=subject, closed_at=None).update(closed_at=ClockTimestamp()) == 1
