"""Notifications about findings that opened or closed since the last one, combined in one message.

Sent by webhook, by mail, or both. Each is recorded separately, so that a failed one is retried at the next
check and the other is not sent twice. A process that dies after sending and before recording sends the
message again: at least once, never lost.
"""

from __future__ import annotations

import datetime as dt
import http.client
import json
import logging
import smtplib
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F, Q

from chatstore.domain.controls import show_on_one_line
from chatstore.domain.runs import Severity
from chatstore.models import Finding

logger = logging.getLogger(__name__)

WEBHOOK_TIMEOUT_SECONDS = 10
"""Timeout of the webhook request."""

NOTIFY_WITHIN = dt.timedelta(hours=24)
"""Findings that closed earlier are not reported, so the first message of a new webhook is not a history."""

MAX_LINES = 50
"""Webhooks and mail servers reject long messages, so a notification lists at most 50 findings."""


@dataclass(frozen=True, slots=True)
class Notification:
    """Findings opened and closed since the last notification, worst first."""

    opened: Sequence[Finding]
    closed: Sequence[Finding]

    @property
    def subject(self) -> str:
        """Subject, for example "Chatstore: 2 findings, 1 closed"."""
        count = len(self.opened)
        parts = [f"{count} finding{'' if count == 1 else 's'}"] if self.opened else []
        parts += [f"{len(self.closed)} closed"] if self.closed else []
        return f"Chatstore: {', '.join(parts)}"

    @property
    def text(self) -> str:
        """One line per finding, worst first, up to the limit; names in them are untrusted."""
        opened = [
            f"{'! ' if finding.severity == Severity.CRITICAL else ''}{finding.summary}" for finding in self.opened
        ]
        lines = [
            show_on_one_line(line) for line in (*opened, *(f"Closed: {finding.summary}" for finding in self.closed))
        ]
        others = len(lines) - MAX_LINES
        more = [f"and {others:,} more"] if others > 0 else []
        return "\n".join([*lines[:MAX_LINES], *more, "", f"{settings.BASE_URL}/"])


def send_notifications(now: dt.datetime) -> None:
    """Send notifications through each configured transport; a failure is logged and retried at the next check."""
    if settings.FINDINGS_WEBHOOK_URL:
        _notify("notified_at", now, _post)
    if settings.FINDINGS_MAIL_TO:
        _notify("mailed_at", now, _mail)


def _notify(sent_field: str, now: dt.datetime, send: Callable[[Notification], None]) -> None:
    changed = list(
        Finding.objects.filter(Q(**{sent_field: None}) | Q(closed_at__gt=F(sent_field))).filter(
            Q(closed_at=None) | Q(closed_at__gte=now - NOTIFY_WITHIN), opened_at__lte=now
        )
    )
    notification = Notification(
        opened=[finding for finding in changed if finding.closed_at is None],
        closed=[finding for finding in changed if finding.closed_at is not None],
    )
    if not changed:
        return
    try:
        send(notification)
    except (OSError, http.client.HTTPException, smtplib.SMTPException) as error:
        # Log only the class and the status: the URL of a webhook is a secret.
        logger.warning("could not send findings notification (%s), will retry", _name_error(error))
        return
    # A finding that closes after this query is reported by the next notification.
    Finding.objects.filter(pk__in=[finding.pk for finding in changed]).update(**{sent_field: now})


def _name_error(error: Exception) -> str:
    status = error.code if isinstance(error, urllib.error.HTTPError) else ""
    return f"{type(error).__name__} {status}".strip()


def _mail(notification: Notification) -> None:
    send_mail(notification.subject, notification.text, settings.DEFAULT_FROM_EMAIL, settings.FINDINGS_MAIL_TO)


def _post(notification: Notification) -> None:
    """Send to the webhook. Raises `OSError` if it was not accepted (any status but 2xx)."""
    body = {
        # The text that chat programs display.
        "text": _escape_mentions(f"{notification.subject}\n{notification.text}"),
        "url": f"{settings.BASE_URL}/",
        "opened": [_describe(finding) for finding in notification.opened],
        "closed": [_describe(finding) for finding in notification.closed],
    }
    post_to_webhook(body)
    logger.info("findings notification accepted by %s", urlsplit(settings.FINDINGS_WEBHOOK_URL).hostname)


def post_to_webhook(body: Mapping[str, Any]) -> None:
    """Send JSON to the webhook, which is set. Raises `OSError` if it was not accepted (any status but 2xx)."""
    request = urllib.request.Request(  # noqa: S310 - settings allow http and https only
        settings.FINDINGS_WEBHOOK_URL,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "Chatstore"},
    )
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=WEBHOOK_TIMEOUT_SECONDS):
        pass


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirect handler that follows none: a redirected GET would lose the notification yet count as accepted."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


def _escape_mentions(text: str) -> str:
    """Escape links and mentions ("<!channel>", "@everyone") for chat programs."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A zero-width space after "@" prevents a mention.
    return escaped.replace("@", "@\u200b")


def _describe(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "subject": finding.subject,
        "severity": Severity(finding.severity).name.lower(),
        "summary": finding.summary,
        "details": finding.details,
        "opened_at": finding.opened_at.isoformat(),
        "closed_at": finding.closed_at and finding.closed_at.isoformat(),
    }
