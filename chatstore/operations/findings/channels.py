"""Findings about buckets of a channel, and the state of the channel as far as it follows from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from django.db import transaction

from chatstore.domain.buckets import BucketKey
from chatstore.domain.health import ChannelState
from chatstore.models import ChannelSummary, Finding

HEAVY_BUCKET = "heavy bucket"
"""Subject: "<channel>:<bucket>"."""

MISSING_SURVIVORS = "missing survivors"
"""Subject: "<channel>:<bucket>:<purge>.<step>"."""

SLOW_PAGE = "slow page"
"""Subject: "<channel>"."""

CHANNEL_KINDS = frozenset({HEAVY_BUCKET, MISSING_SURVIVORS, SLOW_PAGE})
"""Kinds of findings that the state of a channel follows from."""


def channel_of(kind: str, subject: str) -> int | None:
    """Return the channel that a finding is about; None: it is about something else."""
    return int(subject.partition(":")[0]) if kind in CHANNEL_KINDS else None


def bucket_over_limit(finding: Finding) -> BucketKey | None:
    """Return the bucket that has too many tombstones by an open finding; None: it is about something else."""
    if finding.kind != HEAVY_BUCKET or state_by_finding(finding) is not ChannelState.TOMBSTONES:
        return None
    channel_id, bucket = map(int, finding.subject.split(":"))
    return channel_id, bucket


def bucket_of_loss(finding: Finding) -> BucketKey | None:
    """Return the bucket in which messages are missing by a finding; None: it is about something else."""
    if finding.kind != MISSING_SURVIVORS:
        return None
    channel_id, bucket = map(int, finding.subject.split(":")[:2])
    return channel_id, bucket


def state_by_finding(finding: Finding) -> ChannelState:
    """Return the state that a channel has at least while a finding about it is open."""
    if finding.kind == MISSING_SURVIVORS:
        return ChannelState.MISSING_MESSAGES
    if finding.kind == SLOW_PAGE:
        return ChannelState.SLOW
    return ChannelState.TOMBSTONES if "tombstones" in finding.details else ChannelState.HEAVY


def worst_finding(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding with the worst state; of several the more severe one, then the newest. None: no findings."""
    return max(findings, key=lambda one: (state_by_finding(one), one.severity, one.opened_at), default=None)


def findings_of_channels(channel_ids: Collection[int]) -> Mapping[int, list[Finding]]:
    """Return the open findings of channels, by channel, worst first."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for finding in Finding.objects.open().filter(channel_id__in=channel_ids):
        if finding.channel_id is not None:
            found[finding.channel_id].append(finding)
    return found


def store_states(channel_ids: Collection[int]) -> None:
    """Store the states that follow from open findings in the table of all channels.

    Call it in the transaction that opens or closes the findings. The rows are locked first, so that of two transactions
    the later one sees the findings of both.
    """
    if not channel_ids:
        return
    with transaction.atomic():
        rows = list(ChannelSummary.objects.select_for_update().filter(pk__in=channel_ids).order_by("pk"))
        findings, changed = findings_of_channels(channel_ids), []
        for row in rows:
            worst = worst_finding(findings.get(row.pk, ()))
            state = None if worst is None else state_by_finding(worst)
            if row.finding_state != state:
                row.finding_state = state
                changed.append(row)
        ChannelSummary.objects.bulk_update(changed, ["finding_state"])
