"""Tells people of findings: what opened and what closed since the last time, all in one message.

By a webhook, by mail, or both; each is noted for itself, so that the one that failed is tried
again at the next look and the other does not come twice. Who told of a finding and died
before noting so tells of it once more: better twice than never.
"""

from __future__ import annotations

import datetime as dt
import http.client
import json
import logging
import smtplib
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F, Q

from chatstore.domain.controls import show_in_a_line
from chatstore.domain.runs import Severity
from chatstore.models import Finding

logger = logging.getLogger(__name__)

WEBHOOK_SECONDS = 10
"""How long the webhook may take to answer."""

TELLS_OF = dt.timedelta(hours=24)
"""What was over before that is no news: so the first message of a new webhook is no history."""

LINES_AT_MOST = 50
"""Chats and mails refuse what is too long: of a look that found hundreds nobody would ever be told."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What opened and what closed since the last one, worst first."""

    opened: Sequence[Finding]
    closed: Sequence[Finding]

    @property
    def subject(self) -> str:
        """ "Chatstore: 2 findings, 1 over"."""
        count = len(self.opened)
        parts = [f"{count} finding{'' if count == 1 else 's'}"] if self.opened else []
        parts += [f"{len(self.closed)} over"] if self.closed else []
        return f"Chatstore: {', '.join(parts)}"

    @property
    def text(self) -> str:
        """A line each, of very many the worst; names in them are hostile."""
        opened = [f"{'! ' if finding.severity == Severity.RED else ''}{finding.words}" for finding in self.opened]
        lines = [show_in_a_line(line) for line in (*opened, *(f"Over: {finding.words}" for finding in self.closed))]
        others = len(lines) - LINES_AT_MOST
        more = [f"and {others:,} more"] if others > 0 else []
        return "\n".join([*lines[:LINES_AT_MOST], *more, "", f"{settings.BASE_URL}/"])


def tell_findings(now: dt.datetime) -> None:
    """Sends what is news by each way that is set up; a way that fails is logged, and tried at the next look."""
    if settings.FINDINGS_WEBHOOK_URL:
        _tell("told_at", now, _post)
    if settings.FINDINGS_MAIL_TO:
        _tell("mailed_at", now, _mail)


def _tell(noted: str, now: dt.datetime, send: Callable[[Digest], None]) -> None:
    news = list(
        Finding.objects.filter(Q(**{noted: None}) | Q(closed_at__gt=F(noted))).filter(
            Q(closed_at=None) | Q(closed_at__gte=now - TELLS_OF), opened_at__lte=now
        )
    )
    digest = Digest(
        opened=[finding for finding in news if finding.closed_at is None],
        closed=[finding for finding in news if finding.closed_at is not None],
    )
    if not news:
        return
    try:
        send(digest)
    except (OSError, http.client.HTTPException, smtplib.SMTPException) as error:
        # The class and the status alone: an address of a webhook is a secret.
        logger.warning("the digest of findings was not taken (%s); it is sent again", _name_error(error))
        return
    # What closes after it was read here is news once more.
    Finding.objects.filter(pk__in=[finding.pk for finding in news]).update(**{noted: now})


def _name_error(error: Exception) -> str:
    status = error.code if isinstance(error, urllib.error.HTTPError) else ""
    return f"{type(error).__name__} {status}".strip()


def _mail(digest: Digest) -> None:
    send_mail(digest.subject, digest.text, settings.DEFAULT_FROM_EMAIL, settings.FINDINGS_MAIL_TO)


def _post(digest: Digest) -> None:
    """Raises `OSError` when it was not taken (any status but 2xx)."""
    body = {
        # What chats show of a webhook.
        "text": _quiet(f"{digest.subject}\n{digest.text}"),
        "url": f"{settings.BASE_URL}/",
        "opened": [_describe(finding) for finding in digest.opened],
        "closed": [_describe(finding) for finding in digest.closed],
    }
    request = urllib.request.Request(  # noqa: S310 - settings allow http and https only
        settings.FINDINGS_WEBHOOK_URL,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "Chatstore"},
    )
    with urllib.request.build_opener(_StaysHere).open(request, timeout=WEBHOOK_SECONDS):
        logger.info("a digest of findings was taken by %s", urlsplit(settings.FINDINGS_WEBHOOK_URL).hostname)


class _StaysHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would be asked for by GET, without the digest, and count as taken."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


def _quiet(text: str) -> str:
    """A text in which chats find neither a link, nor somebody to call ("<!channel>", "@everyone")."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Followed by a space without a width it is no mention any more.
    return escaped.replace("@", "@\u200b")


def _describe(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "subject": finding.subject,
        "severity": Severity(finding.severity).name.lower(),
        "words": finding.words,
        "details": finding.details,
        "opened_at": finding.opened_at.isoformat(),
        "closed_at": finding.closed_at and finding.closed_at.isoformat(),
    }
