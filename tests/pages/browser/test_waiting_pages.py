"""A page that waits for a job reloads once at its end, also from a slow server: its polls have ended by then."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from chatstore.models.users import User
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import by_victor, confirm, make_channel, old_ids, preview, purge_now, run_to_end, write
from tests.pages.serving import Site, browse_as, create_account, in_thread

DELAY_SECONDS = 3
"""Delay of each document, long enough for three polls."""


class SlowServer(ThreadingHTTPServer):
    """Proxy to the site that delays documents. documents: the URLs of requested documents."""

    daemon_threads = True

    def __init__(self, site: Site) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.site = urlsplit(site.url).netloc
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.documents: list[str] = []

    def handle_error(self, *_: object) -> None:
        """Ignore a connection closed by the browser after an aborted request."""


class SlowHandler(BaseHTTPRequestHandler):
    server: SlowServer

    def do_GET(self) -> None:
        if self.headers.get("Sec-Fetch-Dest") == "document":
            self.server.documents.append(self.path)
            time.sleep(DELAY_SECONDS)
        site = http.client.HTTPConnection(self.server.site)
        # Return the whole body unencoded, so that no length or encoding header has to be forwarded.
        site.request("GET", self.path, headers={**dict(self.headers), "Accept-Encoding": "identity"})
        answer = site.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        site.close()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def slow_server(site: Site) -> Iterator[SlowServer]:
    with SlowServer(site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A moderator's browser."""

    page: Page
    site: Site
    moderator: str


@pytest.fixture
def browser_session(site: Site) -> Iterator[BrowserSession]:
    account = create_account("mona")
    with browse_as(account, site) as page:
        yield BrowserSession(page, site, account[0])


def draft(user: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(6))
    return draft_purge(moderator=user, selection=by_victor(channel))


def queue(user: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(6))
    return confirm(user, preview(user, by_victor(channel)))


def queue_undo(user: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(6))
    purge = purge_now(user, by_victor(channel))
    request_undo(purge.id, moderator=user, part=UndoPart(), reason="Appeal accepted")
    return purge


@pytest.mark.parametrize(
    ("arrange", "work", "heading"),
    [
        pytest.param(
            draft,
            lambda purge: scan_purge(purge.id),
            "Delete 6 messages?",
            marks=pytest.mark.slow,
            id="preview",
        ),
        pytest.param(queue, run_to_end, "Deleted 6 messages", id="running purge"),
        pytest.param(queue_undo, run_to_end, "Restored 6 messages", marks=pytest.mark.slow, id="undo"),
    ],
)
def test_a_finished_job_requests_one_document(
    arrange: Callable[[User], Purge], work: Callable[[Purge], object], heading: str, browser_session: BrowserSession
) -> None:
    page = browser_session.page
    purge = in_thread(lambda: arrange(User.objects.get(username=browser_session.moderator)))
    with slow_server(browser_session.site) as server:
        # The account is signed in here too, because cookies ignore ports.
        page.goto(f"{server.url}/purges/{purge.pk}/")
        with page.expect_response(re.compile(r"/live/\?")):
            pass
        server.documents.clear()
        in_thread(partial(work, purge))
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        assert server.documents == [f"/purges/{purge.pk}/"]
        # The list of channels may still be on its way: a server that ends would reset its connection.
        page.goto("about:blank")
