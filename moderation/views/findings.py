"""Findings as pages list them: worst first, each with a link to where it can be resolved."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST

from chatstore.domain.buckets import BucketKey, format_bucket
from chatstore.models import Finding
from chatstore.operations.findings.channels import (
    HEAVY_BUCKET,
    MISSING_SURVIVORS,
    SLOW_PAGE,
    bucket_of_loss,
    bucket_over_limit,
)
from chatstore.operations.findings.records import EVENT_KINDS, WRONG_SUMS, finding_repairs
from chatstore.operations.jobs.definitions import list_jobs
from chatstore.operations.monitoring.checks import BROKEN_SCHEDULE, FAILED_RUN, HEARTBEAT_MISSING, MISSED_RUN, NODE_DOWN
from chatstore.operations.monitoring.console import (
    Actor,
    ListedRun,
    current_runs,
    describe_cassandra_outage,
    findings_for,
)
from chatstore.operations.repair_status import rounds
from chatstore.operations.repair_status.repair_clock import LATE_REPAIR
from chatstore.operations.rights import MAINTAIN
from moderation.operations.access.audit_archive import AUDIT_RETENTION
from moderation.operations.access.audit_monitoring import CHANGEABLE_AUDIT_LOG, UNLINKED_ENTRIES
from moderation.operations.access.maintenance_acts import acknowledge_finding
from moderation.operations.buckets.actions import REPAIR, Action, maintainable_buckets, recommend_actions
from moderation.operations.purging.approvals import APPROVAL_REQUEST
from moderation.operations.purging.overdue import OVERDUE_PREVIEW
from moderation.operations.purging.stuck_check import STUCK_PURGE
from moderation.operations.raids.detection import RAID
from moderation.views.session import actor_of

_CLUSTER_ANCHORS = {
    LATE_REPAIR: ("clocks", gettext_lazy("View repair clocks")),
    NODE_DOWN: ("nodes", gettext_lazy("View nodes")),
}
"""Section of the cluster page that resolves a kind of finding, and the label of its link."""

_ADVICE_ON_SIZE = gettext_lazy(
    "To make it smaller, delete messages of this period that are no longer needed, and compact the bucket when "
    "gc_grace has passed since."
)
_ADVICE_ON_MISSING = gettext_lazy(
    "Repair the bucket: a replica may still have them. Import those that stay missing from an export, then acknowledge "
    "this finding."
)
_ADVICE_ON_SCHEDULE = gettext_lazy("Save a valid schedule on the job’s page.")


@dataclass(frozen=True, slots=True)
class Link:
    """A link and its label."""

    url: str
    label: str | Promise


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A finding, and the pages that resolve or explain it, the most useful one first.

    is_event: it does not close automatically, and the user may acknowledge it. job: the one whose run resolves it, ""
    for none or if the user may not start it. action: what resolves it in its bucket, by the same rule. run: that job's
    run, or one of the bucket, if it is due or running. advice: what to do where no button does all of it; "" for
    nothing. outage: why the job or the action would fail now; "" if it would not. repair_state: that of the repair that
    may bring back what is missing; until it has ended, the finding cannot be acknowledged. "" for none.
    """

    finding: Finding
    links: Sequence[Link]
    is_event: bool
    job: str = ""
    bucket: BucketKey | None = None
    action: Action | None = None
    run: ListedRun | None = None
    advice: str | Promise = ""
    outage: str = ""
    repair_state: str = ""


def list_findings(user: Actor, *, limit: int) -> tuple[list[FindingLine], int]:
    """Return the first open findings, and the number of the others. Raises `Forbidden`."""
    found = findings_for(user)
    lines = describe_findings(user, found[:limit])
    return lines, len(found) - len(lines)


def describe_findings(user: Actor, findings: Sequence[Finding], *, here: str = "") -> list[FindingLine]:
    """Return findings as lines. here: the path of the page, to which none of them links."""
    may_act = user.has_perm(MAINTAIN)
    links = [_links_of(finding, user) for finding in findings]
    jobs = [_job_of(finding) for finding in findings]
    # The page of a bucket has its actions and runs itself.
    buckets = [
        None if any(link.url == here for link in found) else _bucket_of(finding)
        for finding, found in zip(findings, links, strict=True)
    ]
    keys = {bucket for bucket in buckets if bucket is not None}
    runs = current_runs(user, {job for job in jobs if job}, {format_bucket(*key) for key in keys})
    idle = [key for key in keys if format_bucket(*key) not in runs]
    repairs = finding_repairs(findings) if may_act else {}
    allowed = maintainable_buckets(user, idle) if may_act else set()
    acted_on = [bucket if bucket in allowed else None for bucket in buckets]
    heavy = {
        bucket
        for finding, bucket in zip(findings, acted_on, strict=True)
        if bucket is not None and finding.kind == HEAVY_BUCKET
    }
    actions = _actions_on(findings, acted_on, heavy)
    offered = [job if action is None else action.job for job, action in zip(jobs, actions, strict=True)]
    # Which action resolves a heavy bucket is unknown during an outage.
    outage = describe_cassandra_outage() if may_act and (any(offered) or heavy) else ""
    needing = {job.name for job in list_jobs() if job.needs_cassandra} if outage else set()
    return [
        FindingLine(
            finding,
            [link for link in found if link.url and link.url != here],
            is_event=may_act and finding.kind in EVENT_KINDS,
            job=job if may_act else "",
            bucket=bucket,
            action=action,
            run=runs.get(job if bucket is None else format_bucket(*bucket)),
            advice=_advice_on(finding),
            outage=outage if name in needing or (finding.kind == HEAVY_BUCKET and bucket in heavy) else "",
            repair_state=repairs.get(finding.pk, ""),
        )
        for finding, found, job, bucket, action, name in zip(
            findings, links, jobs, buckets, actions, offered, strict=True
        )
    ]


def _bucket_of(finding: Finding) -> BucketKey | None:
    """Return the bucket in which an action resolves a finding; None for another finding."""
    try:
        return bucket_of_loss(finding) or bucket_over_limit(finding)
    except ValueError:
        # Opened by another version.
        return None


def _actions_on(
    findings: Sequence[Finding], buckets: Sequence[BucketKey | None], heavy: Collection[BucketKey]
) -> list[Action | None]:
    """Return what resolves each finding in its bucket. heavy: buckets over the limit of tombstones."""
    recommended = recommend_actions(heavy)
    return [
        None if bucket is None else REPAIR if finding.kind == MISSING_SURVIVORS else recommended.get(bucket)
        for finding, bucket in zip(findings, buckets, strict=True)
    ]


def _advice_on(finding: Finding) -> str | Promise:
    if finding.kind == MISSING_SURVIVORS:
        return _ADVICE_ON_MISSING
    if finding.kind == BROKEN_SCHEDULE:
        return _ADVICE_ON_SCHEDULE
    if finding.kind == HEAVY_BUCKET and "bytes" in finding.details and "tombstones" not in finding.details:
        return _ADVICE_ON_SIZE
    return ""


def _job_of(finding: Finding) -> str:
    """Return the job that resolves a finding if it runs now; "" for none."""
    if finding.kind == LATE_REPAIR:
        return rounds.JOB
    name = finding.subject if finding.kind in (FAILED_RUN, MISSED_RUN) else ""
    return name if any(job.name == name and job.schedule is not None for job in list_jobs()) else ""


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def finding_acknowledge(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Acknowledge a finding, and return to Home or the channel's page if it was done there."""
    finding = acknowledge_finding(finding_id, actor=actor_of(request))
    if "at_channel" in request.POST and finding.channel_id is not None:
        return redirect("channel_health", finding.channel_id)
    return redirect("home" if "at_home" in request.POST else "cluster_health")


def _links_of(finding: Finding, user: Actor) -> list[Link]:
    links = [Link(*_link_of(finding, user))]
    if finding.kind == MISSING_SURVIVORS and "purge" in finding.details and user.has_perm("moderation.view_purge"):
        # Its undo restores what it deleted; the finding lists the IDs that are missing.
        links.insert(0, Link(reverse("purge", args=[int(finding.details["purge"])]), gettext("Open purge")))
    if finding.kind == UNLINKED_ENTRIES:
        # Beat has them linked: as long as they are not, it or the workers have stopped.
        links.insert(0, Link(reverse("maintenance"), gettext("Open maintenance")))
    return links


def _link_of(finding: Finding, user: Actor) -> tuple[str, str | Promise]:  # noqa: PLR0911
    kind, subject = finding.kind, finding.subject
    try:
        if kind in (HEAVY_BUCKET, MISSING_SURVIVORS, SLOW_PAGE):
            return _link_of_health(subject)
        if kind in (FAILED_RUN, MISSED_RUN, BROKEN_SCHEDULE, AUDIT_RETENTION):
            return _link_of_job(finding)
        if kind == HEARTBEAT_MISSING:
            return reverse("maintenance"), gettext("Open maintenance")
        if kind == RAID:
            return _link_of_raid(int(subject), user)
        if kind in (UNLINKED_ENTRIES, CHANGEABLE_AUDIT_LOG) and user.has_perm("moderation.view_auditentry"):
            return reverse("audit"), gettext("Open audit log")
        if kind in _CLUSTER_ANCHORS:
            place, link = _CLUSTER_ANCHORS[kind]
            return f"{reverse('cluster_health')}#{place}", link
        if kind in (STUCK_PURGE, OVERDUE_PREVIEW, WRONG_SUMS, APPROVAL_REQUEST):
            return _link_of_purge(finding)
    except (NoReverseMatch, KeyError, ValueError):
        # Opened by another version: show it without a link.
        return "", ""
    return "", ""


def _link_of_health(subject: str) -> tuple[str, str | Promise]:
    """Return the link to the bucket, or else the channel, that a subject begins with."""
    channel_id, *bucket = map(int, subject.split(":")[:2])
    if bucket:
        return reverse("bucket_health", args=[channel_id, *bucket]), gettext("Open bucket")
    return reverse("channel_health", args=[channel_id]), gettext("View channel health")


def _link_of_job(finding: Finding) -> tuple[str, str | Promise]:
    if finding.kind == FAILED_RUN and "run" in finding.details:
        return reverse("run", args=[finding.details["run"]]), gettext("Open run")
    name = "audit_archive" if finding.kind == AUDIT_RETENTION else finding.subject
    return reverse("job", args=[name]), gettext("Open job")


def _link_of_raid(channel_id: int, user: Actor) -> tuple[str, str | Promise]:
    if user.has_perm("moderation.add_purge"):
        return reverse("raid", args=[channel_id]), gettext("Review and clear")
    return reverse("timeline", args=[channel_id]), gettext("Open channel")


def _link_of_purge(finding: Finding) -> tuple[str, str | Promise]:
    if not finding.details.get("is_rewrite"):
        purge_id, _colon, _approval = finding.subject.partition(":")
        return reverse("purge", args=[int(purge_id)]), gettext("Open purge")
    # Rewrites have no page of their own, so link to the channel.
    channels = finding.details["channels"]
    return (reverse("channel_health", args=[int(channels[0])]), gettext("Open channel")) if channels else ("", "")
