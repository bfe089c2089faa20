"""Reports of messages: those of one message are one case until a moderator resolves it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from chatstore.domain.reports import ReportCategory
from chatstore.models import Report, ReportCase
from chatstore.models.functions import ClockTimestamp


def record_report(
    channel_id: int, message_id: int, *, reporter_id: int, category: ReportCategory, text: str, author_id: int | None
) -> bool:
    """Add a report to the open case of its message, or open one; return whether it was new.

    A member has one report in a case: another one changes nothing. author_id: of the message, None if unknown.
    """
    with transaction.atomic():
        # Locks the open case: resolving it waits; if it was resolved before, a new case is opened.
        case, _ = ReportCase.objects.select_for_update().get_or_create(
            channel_id=channel_id,
            message_id=message_id,
            resolved_at=None,
            defaults={"author_id": author_id, "category": category},
        )
        _, is_new = Report.objects.get_or_create(
            case=case, reporter_id=reporter_id, defaults={"category": category, "text": text}
        )
        if is_new:
            ReportCase.objects.filter(pk=case.pk).update(
                report_count=F("report_count") + 1, reported_at=ClockTimestamp()
            )
    return is_new
