"""Opened and closed findings are reported once, in one message, by webhook and by mail; failures are retried."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from pytest_django import Settings

from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.notifications import MAX_LINES, send_notifications
from chatstore.operations.findings.records import Problem, open_finding
from tests.findings import close_finding
from tests.webhooks import WebhookServer, receive_webhooks

SECRET = "T0P-s3cret"


@pytest.fixture
def webhook(settings: Settings) -> Iterator[WebhookServer]:
    with receive_webhooks() as server:
        settings.FINDINGS_WEBHOOK_URL = f"{server.url}/hooks/{SECRET}"
        yield server


@pytest.fixture(autouse=True)
def _only_own_findings(settings: Settings) -> Iterator[None]:
    """Mark findings that other tests left open as reported."""
    settings.FINDINGS_WEBHOOK_URL, settings.FINDINGS_MAIL_TO = "", []
    now = postgres_now()
    Finding.objects.update(notified_at=now, mailed_at=now)
    yield
    Finding.objects.filter(kind__startswith="notification-").delete()


@pytest.fixture
def kind() -> str:
    return f"notification-{uuid.uuid4().hex[:8]}"


def notify_now() -> None:
    send_notifications(postgres_now())


def summaries_of(received: dict[str, Any], which: str) -> list[str]:
    return [finding["summary"] for finding in received[which]]


def test_opened_and_closed_findings_are_one_message_worst_first(kind: str, webhook: WebhookServer) -> None:
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavy", {"tombstones": 1_200}))
    notify_now()
    open_finding(kind, "2", Problem(Severity.WARNING, "a repair is late"))
    open_finding(kind, "3", Problem(Severity.CRITICAL, "a node is down"))
    close_finding(kind, "1")
    notify_now()
    first, second = webhook.received
    assert summaries_of(first, "opened") == ["a bucket is heavy"]
    assert first["opened"][0]["details"] == {"tombstones": 1_200}
    assert summaries_of(second, "opened") == ["a node is down", "a repair is late"]
    assert summaries_of(second, "closed") == ["a bucket is heavy"]
    assert second["text"].startswith(
        "Chatstore: 2 findings, 1 closed\n! a node is down\na repair is late\nClosed: a bucket"
    )


def test_no_finding_is_reported_twice_and_no_empty_message_is_sent(kind: str, webhook: WebhookServer) -> None:
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavy"))
    notify_now()
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavier"))
    notify_now()
    assert len(webhook.received) == 1


def test_a_finding_that_became_critical_is_reported_once_more(kind: str, webhook: WebhookServer) -> None:
    for severity in (Severity.WARNING, Severity.CRITICAL, Severity.CRITICAL, Severity.WARNING):
        open_finding(kind, "1", Problem(severity, f"a repair is late ({severity.name})"))
        notify_now()
    assert [summaries_of(received, "opened") for received in webhook.received] == [
        ["a repair is late (WARNING)"],
        ["a repair is late (CRITICAL)"],
    ]


def test_a_hostile_name_mentions_no_user_and_starts_no_new_line(
    kind: str, webhook: WebhookServer, settings: Settings
) -> None:
    settings.FINDINGS_MAIL_TO = ["otto@example.org"]
    name = "#x <!channel> @everyone\n! Node 1 is down\u202e"
    open_finding(kind, "1", Problem(Severity.WARNING, f"{name}: 5 tombstones & more"))
    notify_now()
    (received,) = webhook.received
    shown = "#x <!channel> @everyone ! Node 1 is down[RLO]: 5 tombstones & more"
    assert (
        received["text"].splitlines()[1]
        == "#x &lt;!channel&gt; @\u200beveryone ! Node 1 is down[RLO]: 5 tombstones &amp; more"
    )
    assert summaries_of(received, "opened") == [f"{name}: 5 tombstones & more"]
    assert str(mail.outbox[0].body).splitlines()[0] == shown


def test_a_long_notification_names_the_worst_and_counts_the_rest(kind: str, webhook: WebhookServer) -> None:
    for number in range(MAX_LINES + 7):
        open_finding(kind, str(number), Problem(Severity.WARNING, f"bucket {number} is heavy"))
    open_finding(kind, "node", Problem(Severity.CRITICAL, "a node is down"))
    notify_now()
    (received,) = webhook.received
    lines = received["text"].splitlines()
    assert lines[:2] == [f"Chatstore: {MAX_LINES + 8} findings", "! a node is down"]
    assert lines[MAX_LINES + 1] == "and 8 more"
    assert len(received["opened"]) == MAX_LINES + 8


def test_a_failing_webhook_is_retried_and_its_url_is_not_logged(
    kind: str, webhook: WebhookServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavy"))
    webhook.status = 500
    notify_now()
    webhook.status = 200
    notify_now()
    notify_now()
    assert [summaries_of(received, "opened") for received in webhook.received] == [["a bucket is heavy"]] * 2
    assert "HTTPError 500" in caplog.text
    assert SECRET not in caplog.text


def test_an_unreachable_webhook_is_reported_and_retried(
    kind: str, webhook: WebhookServer, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    address, settings.FINDINGS_WEBHOOK_URL = settings.FINDINGS_WEBHOOK_URL, f"http://127.0.0.1:9/{SECRET}"
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavy"))
    notify_now()
    assert "URLError" in caplog.text
    assert SECRET not in caplog.text
    settings.FINDINGS_WEBHOOK_URL = address
    notify_now()
    assert len(webhook.received) == 1


def test_a_redirecting_webhook_counts_as_not_delivered(kind: str, webhook: WebhookServer) -> None:
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavy"))
    webhook.status, webhook.redirects_to = 302, f"{webhook.url}/elsewhere"
    notify_now()
    assert webhook.get_paths == []
    webhook.status, webhook.redirects_to = 200, ""
    notify_now()
    assert [summaries_of(received, "opened") for received in webhook.received] == [["a bucket is heavy"]] * 2


def test_a_mail_has_the_same_text_and_is_not_repeated_for_a_failed_webhook(
    kind: str, webhook: WebhookServer, settings: Settings
) -> None:
    settings.FINDINGS_MAIL_TO = ["otto@chat.example"]
    webhook.status = 500
    open_finding(kind, "1", Problem(Severity.CRITICAL, "a node is down"))
    notify_now()
    notify_now()
    (sent,) = mail.outbox
    assert sent.to == ["otto@chat.example"]
    assert sent.subject == "Chatstore: 1 finding"
    assert sent.body.startswith("! a node is down\n")
    assert len(webhook.received) == 2


def test_a_finding_closed_before_notification_is_reported_as_resolved(kind: str, webhook: WebhookServer) -> None:
    open_finding(kind, "1", Problem(Severity.WARNING, "a bucket is heavy"))
    close_finding(kind, "1")
    notify_now()
    (received,) = webhook.received
    assert (received["opened"], summaries_of(received, "closed")) == ([], ["a bucket is heavy"])


def test_a_new_webhook_gets_no_old_findings(kind: str, webhook: WebhookServer) -> None:
    over = open_finding(kind, "1", Problem(Severity.WARNING, "a bucket was heavy"))
    long_ago = postgres_now() - dt.timedelta(days=3)
    Finding.objects.filter(pk=over.pk).update(opened_at=long_ago, closed_at=long_ago)
    notify_now()
    assert webhook.received == []
