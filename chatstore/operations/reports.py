"""Reports of messages: those of one message are one case until a moderator resolves it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from chatstore.domain.reports import ReportCategory
from chatstore.domain.row_ids import shard_of
from chatstore.models import Report, ReportCase
from chatstore.models.functions import ClockTimestamp
from chatstore.models.ids import NextId
from chatstore.operations.row_ids import guild_of_channel, retry_taken_ids


def record_report(
    channel_id: int, message_id: int, *, reporter_id: int, category: ReportCategory, text: str, author_id: int | None
) -> bool:
    """Add a report to the open case of its message, or open one; return whether it was new.

    A member has one report in a case: another one changes nothing. author_id: of the message, None if unknown.
    """
    new_id = NextId(shard_of(guild_of_channel(channel_id)))
    with transaction.atomic():
        # Locks the open case: resolving it waits; if it was resolved before, a new case is opened.
        case, _ = retry_taken_ids(
            lambda: ReportCase.objects.select_for_update().get_or_create(
                channel_id=channel_id,
                message_id=message_id,
                resolved_at=None,
                defaults={"id": new_id, "author_id": author_id, "category": category},
            )
        )
        _, is_new = retry_taken_ids(
            lambda: Report.objects.get_or_create(
                case=case, reporter_id=reporter_id, defaults={"id": new_id, "category": category, "text": text}
            )
        )
        if is_new:
            ReportCase.objects.filter(pk=case.pk).update(
                report_count=F("report_count") + 1, reported_at=ClockTimestamp()
            )
    return is_new
