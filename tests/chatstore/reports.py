"""Reports of messages for tests."""

from __future__ import annotations

from chatstore.domain.reports import ReportCategory
from chatstore.models import Channel, ReportCase
from chatstore.operations.reports import record_report

REPORTER = 73


def report(
    channel: Channel,
    message_id: int,
    *,
    reporter: int = REPORTER,
    author: int | None = 71,
    category: ReportCategory = ReportCategory.SPAM,
    text: str = "",
) -> ReportCase:
    """Report a message; return its open case."""
    record_report(channel.pk, message_id, reporter_id=reporter, category=category, text=text, author_id=author)
    return ReportCase.objects.open().get(channel=channel, message_id=message_id)
