"""Opened and closed findings are reported once, in one message, by webhook and by mail; failures are retried."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core import mail
from pytest_django import Settings

from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.notifications import LINES_AT_MOST, tell_findings
from chatstore.operations.findings.records import Found, close_finding, open_finding

SECRET = "T0P-s3cret"


@dataclass
class Hook:
    """A web server that receives webhooks; records the requests and answers as configured."""

    port: int = 0
    status: int = 204
    leads_to: str = ""
    visits: list[str] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def hook(settings: Settings) -> Iterator[Hook]:
    heard = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.taken.append(json.loads(body))
            self.send_response(heard.status)
            if heard.leads_to:
                self.send_header("Location", heard.leads_to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            heard.visits.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server names it so
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    heard.port = server.server_port
    settings.FINDINGS_WEBHOOK_URL = f"http://127.0.0.1:{heard.port}/hooks/{SECRET}"
    yield heard
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _only_my_findings(settings: Settings) -> Iterator[None]:
    """Mark findings that other tests left open as reported."""
    settings.FINDINGS_WEBHOOK_URL, settings.FINDINGS_MAIL_TO = "", []
    now = postgres_now()
    Finding.objects.update(told_at=now, mailed_at=now)
    yield
    Finding.objects.filter(kind__startswith="digest-").delete()


@pytest.fixture
def kind() -> str:
    return f"digest-{uuid.uuid4().hex[:8]}"


def tell() -> None:
    tell_findings(postgres_now())


def words_of(taken: dict[str, Any], which: str) -> list[str]:
    return [finding["words"] for finding in taken[which]]


def test_what_opened_and_closed_is_one_message_worst_first(kind: str, hook: Hook) -> None:
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavy", {"tombstones": 1_200}))
    tell()
    open_finding(kind, "2", Found(Severity.AMBER, "a repair is late"))
    open_finding(kind, "3", Found(Severity.RED, "a node is down"))
    close_finding(kind, "1")
    tell()
    first, second = hook.taken
    assert words_of(first, "opened") == ["a bucket is heavy"]
    assert first["opened"][0]["details"] == {"tombstones": 1_200}
    assert words_of(second, "opened") == ["a node is down", "a repair is late"]
    assert words_of(second, "closed") == ["a bucket is heavy"]
    assert second["text"].startswith(
        "Chatstore: 2 findings, 1 closed\n! a node is down\na repair is late\nClosed: a bucket"
    )


def test_nothing_is_told_twice_and_without_news_nothing_at_all(kind: str, hook: Hook) -> None:
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavy"))
    tell()
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavier"))
    tell()
    assert len(hook.taken) == 1


def test_what_has_become_urgent_is_told_once_more(kind: str, hook: Hook) -> None:
    for severity in (Severity.AMBER, Severity.RED, Severity.RED, Severity.AMBER):
        open_finding(kind, "1", Found(severity, f"a repair is late ({severity.name})"))
        tell()
    assert [words_of(taken, "opened") for taken in hook.taken] == [
        ["a repair is late (AMBER)"],
        ["a repair is late (RED)"],
    ]


def test_a_hostile_name_calls_nobody_and_makes_no_line_of_its_own(kind: str, hook: Hook, settings: Settings) -> None:
    settings.FINDINGS_MAIL_TO = ["otto@example.org"]
    name = "#x <!channel> @everyone\n! Node 1 is down\u202e"
    open_finding(kind, "1", Found(Severity.AMBER, f"{name}: 5 tombstones & more"))
    tell()
    (taken,) = hook.taken
    shown = "#x <!channel> @everyone ! Node 1 is down[RLO]: 5 tombstones & more"
    assert (
        taken["text"].splitlines()[1]
        == "#x &lt;!channel&gt; @\u200beveryone ! Node 1 is down[RLO]: 5 tombstones &amp; more"
    )
    assert words_of(taken, "opened") == [f"{name}: 5 tombstones & more"]
    assert str(mail.outbox[0].body).splitlines()[0] == shown


def test_of_very_many_the_text_names_the_worst_and_says_how_many_more(kind: str, hook: Hook) -> None:
    for number in range(LINES_AT_MOST + 7):
        open_finding(kind, str(number), Found(Severity.AMBER, f"bucket {number} is heavy"))
    open_finding(kind, "node", Found(Severity.RED, "a node is down"))
    tell()
    (taken,) = hook.taken
    lines = taken["text"].splitlines()
    assert lines[:2] == [f"Chatstore: {LINES_AT_MOST + 8} findings", "! a node is down"]
    assert lines[LINES_AT_MOST + 1] == "and 8 more"
    assert len(taken["opened"]) == LINES_AT_MOST + 8


def test_a_webhook_that_fails_is_tried_again_at_the_next_look_and_its_address_is_in_no_log(
    kind: str, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavy"))
    hook.status = 500
    tell()
    hook.status = 200
    tell()
    tell()
    assert [words_of(taken, "opened") for taken in hook.taken] == [["a bucket is heavy"]] * 2
    assert "HTTPError 500" in caplog.text
    assert SECRET not in caplog.text


def test_a_webhook_that_nobody_answers_is_said_and_tried_again(
    kind: str, hook: Hook, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    address, settings.FINDINGS_WEBHOOK_URL = settings.FINDINGS_WEBHOOK_URL, f"http://127.0.0.1:9/{SECRET}"
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavy"))
    tell()
    assert "URLError" in caplog.text
    assert SECRET not in caplog.text
    settings.FINDINGS_WEBHOOK_URL = address
    tell()
    assert len(hook.taken) == 1


def test_a_webhook_that_has_moved_has_taken_nothing(kind: str, hook: Hook) -> None:
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavy"))
    hook.status, hook.leads_to = 302, f"http://127.0.0.1:{hook.port}/elsewhere"
    tell()
    assert hook.visits == []
    hook.status, hook.leads_to = 200, ""
    tell()
    assert [words_of(taken, "opened") for taken in hook.taken] == [["a bucket is heavy"]] * 2


def test_a_mail_says_the_same_and_does_not_come_twice_for_a_webhook_that_failed(
    kind: str, hook: Hook, settings: Settings
) -> None:
    settings.FINDINGS_MAIL_TO = ["otto@chat.example"]
    hook.status = 500
    open_finding(kind, "1", Found(Severity.RED, "a node is down"))
    tell()
    tell()
    (sent,) = mail.outbox
    assert sent.to == ["otto@chat.example"]
    assert sent.subject == "Chatstore: 1 finding"
    assert sent.body.startswith("! a node is down\n")
    assert len(hook.taken) == 2


def test_what_closed_before_anybody_was_told_is_told_as_over(kind: str, hook: Hook) -> None:
    open_finding(kind, "1", Found(Severity.AMBER, "a bucket is heavy"))
    close_finding(kind, "1")
    tell()
    (taken,) = hook.taken
    assert (taken["opened"], words_of(taken, "closed")) == ([], ["a bucket is heavy"])


def test_a_new_webhook_hears_no_old_stories(kind: str, hook: Hook) -> None:
    over = open_finding(kind, "1", Found(Severity.AMBER, "a bucket was heavy"))
    long_ago = postgres_now() - dt.timedelta(days=3)
    Finding.objects.filter(pk=over.pk).update(opened_at=long_ago, closed_at=long_ago)
    tell()
    assert hook.taken == []
