"""Closing of one finding, as if the check that opened it no longer reported it."""

from chatstore.models import Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.findings.channels import store_states


def close_finding(kind: str, subject: str) -> None:
    finding = Finding.objects.open().get(kind=kind, subject=subject)
    Finding.objects.filter(pk=finding.pk).update(closed_at=ClockTimestamp())
    store_states([] if finding.channel_id is None else [finding.channel_id])
