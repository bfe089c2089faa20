"""Check for channels whose newest page is slow, from the table of all channels: nothing is measured for it."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db.models import Q, QuerySet

from chatstore.domain.health import SLOW_FROM_US, ChannelState
from chatstore.domain.runs import Severity
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models import ChannelSummary, Finding
from chatstore.operations.findings.channels import SLOW_PAGE
from chatstore.operations.findings.records import Problem, sync_findings

MAX_FINDINGS = 20
"""On a cluster that is slow as a whole, every channel would have a finding, and each is sent. The slowest have one."""


def check_slow_pages(_now: dt.datetime) -> None:
    """Monitor check: update the findings of slow pages, from the rows that the monitor refreshes."""
    known = Finding.objects.open().filter(kind=SLOW_PAGE).values_list("subject", flat=True)
    known_ids = [int(subject) for subject in known]
    rows = list(_slow_rows().filter(pk__in=known_ids))
    others = _slow_rows().exclude(pk__in=known_ids).order_by("-page_us", "pk")
    rows += others[: max(MAX_FINDINGS - len(rows), 0)]
    sync_findings(SLOW_PAGE, {str(row.pk): _describe(row) for row in rows})


def check_slow_page(channel_id: int) -> None:
    """Update the finding of one channel, whose row has been refreshed."""
    found = {str(row.pk): _describe(row) for row in _slow_rows().filter(pk=channel_id)}
    sync_findings(SLOW_PAGE, found, among=Q(subject=str(channel_id)))


def _slow_rows() -> QuerySet[ChannelSummary]:
    """Return the rows over a limit of `state_of_channel` for the newest page; the index of states finds them."""
    over = Q(page_us__gte=SLOW_FROM_US) | Q(page_tombstones__gte=settings.HEALTH_WARN_TOMBSTONES)
    rows = ChannelSummary.objects.select_related("channel__guild")
    return rows.filter(over, state__gte=ChannelState.SLOW)


def _describe(row: ChannelSummary) -> Problem:
    page_us, tombstones = row.page_us or 0, row.page_tombstones or 0
    measured_at = row.page_at or _("time unknown")
    if page_us >= SLOW_FROM_US:
        # With as many digits as on pages.
        milliseconds = round(page_us / 1000) if page_us >= 99_950 else round(page_us / 1000, 1)
        summary = _(
            "%(channel)s: The newest page takes %(duration)s ms to read (%(time)s). From %(limit)s ms on, it is slow.",
            channel=row.channel.full_name,
            duration=milliseconds,
            time=measured_at,
            limit=SLOW_FROM_US // 1000,
        )
    else:
        summary = ngettext_lazy(
            "%(channel)s: The newest page reads %(count)s tombstone (%(time)s). From %(limit)s on, it is slow.",
            "%(channel)s: The newest page reads %(count)s tombstones (%(time)s). From %(limit)s on, it is slow.",
            tombstones,
            channel=row.channel.full_name,
            time=measured_at,
            limit=settings.HEALTH_WARN_TOMBSTONES,
        )
    details = {"channel": str(row.pk), "page_us": page_us, "page_tombstones": tombstones}
    return Problem(Severity.WARNING, summary, details)
