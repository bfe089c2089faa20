"""A real web server and a real worker for the duration of a test, on separate ports."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.error import HTTPError

from django.conf import settings
from django.db import connection
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from chatstore.models.users import User
from devstack.web import ACCESS_LOG
from moderation.management.demo_accounts import CAST, set_roles
from tests.brokers import broker_for
from tests.planted import assert_no_secrets, plant
from tests.waiting import LIMIT_SECONDS

START_SECONDS = 300
STOP_SECONDS = 60

expect.set_options(timeout=LIMIT_SECONDS * 1_000)

_BROWSERS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(os.path.exists, _BROWSERS), _BROWSERS[-1])
"""Debian's paths; another one by the environment variable. Without windows a page takes two thirds of the time."""

ENDED_BY_LEAVING = ("htmx:afterRequest,", "htmx:sendAbort,")
"""What htmx logs of a poll under way when its page is left; of one that failed, htmx:sendError and others, too."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Site:
    """The URL of the server, and the environment shared by its commands."""

    url: str
    environ: dict[str, str]

    def manage(self, *arguments: str) -> str:
        """Run `manage.py` with the arguments and return its output; raises if it fails."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, env=self.environ, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=600, check=True
        )
        return done.stdout


@contextmanager
def serve(logs: Path, *, purpose: str = "pages") -> Iterator[Site]:
    """Run gunicorn and a Celery worker against the test servers; stop them by their pids.

    Fails if one of their logs contains a secret that was planted.
    """
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    # The monitor is off: it would find and show what tests leave behind on purpose.
    environ = {**os.environ, "BASE_URL": url, "REDIS_URL": broker_for(purpose), "MONITOR_INTERVAL_SECONDS": "0"}
    web = ["gunicorn", "chatstore.wsgi", "--bind", f"127.0.0.1:{port}", "--workers", "2", "--no-control-socket"]
    web += ["--access-logfile=-", f"--access-logformat={ACCESS_LOG}"]
    worker = ["celery", "--app", "chatstore", "worker", "--concurrency", "1", "--queues", "celery,previews,maintenance"]
    worker += ["--hostname", f"pages-{port}@%h", "--loglevel", "info"]
    children = [
        _start(web, environ, logs / "web.log"),
        _start(worker, environ, logs / "worker.log"),
    ]
    try:
        _wait_for(url, children[0])
        yield Site(url, environ)
    finally:
        for child in children:
            child.send_signal(signal.SIGTERM)
        for child in children:
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
    assert_no_secrets(logs / "web.log", logs / "worker.log")


@contextmanager
def serve_only_pages(logs: Path, **changed: str) -> Iterator[Site]:
    """Run gunicorn only, with changed settings; they may name a missing server, so that requests get errors."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    environ = {**os.environ, "BASE_URL": url, **changed}
    command = ["gunicorn", "chatstore.wsgi", "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
    log = logs / f"web-{port}.log"
    web = _start(command, environ, log)
    try:
        _wait_for(url, web)
        yield Site(url, environ)
    finally:
        web.send_signal(signal.SIGTERM)
        web.wait(STOP_SECONDS)
    assert_no_secrets(log)


_shared_browsers: list[Browser] = []


@contextmanager
def browse() -> Iterator[Browser]:
    """Run headless Chromium, or use the one that is shared; the pages that were opened are closed at the end."""
    if not _shared_browsers:
        with _run_chromium() as browser:
            yield browser
        return
    browser = _shared_browsers[-1]
    others = [*browser.contexts]
    try:
        yield browser
    finally:
        for context in browser.contexts:
            if context not in others:
                context.close()


@contextmanager
def share_browser() -> Iterator[None]:
    """Have `browse` use the same Chromium meanwhile: to start one takes more than a second of processor time.

    Playwright's event loop then runs in this thread all the time. Django's refusal of database access beside one must
    be off.
    """
    with _run_chromium() as browser:
        _shared_browsers.append(browser)
        try:
            yield
        finally:
            _shared_browsers.remove(browser)


@contextmanager
def _run_chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # As root Chromium has no sandbox; it only opens our own pages.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def browse_as(account: tuple[str, str], site: Site) -> Iterator[Page]:
    """Open a browser page signed in with the account; fail if the browser logged a warning or an error."""
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(ENDED_BY_LEAVING):
            complaints.append(message.text)

    with browse() as browser:
        # Chromium with windows allows it after a click.
        page = browser.new_page(viewport={"width": 1280, "height": 900}, permissions=["clipboard-write"])
        page.set_default_timeout(LIMIT_SECONDS * 1_000)
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        sign_in(page, site, account)
        yield page
    assert complaints == [], complaints


def create_account(name: str) -> tuple[str, str]:
    """Create a user of the cast with a unique name; return user name and password."""
    password = plant("password", secrets.token_urlsafe(12))
    user = User.objects.create_user(
        f"{name}-{secrets.token_hex(3)}", password=password, is_staff=True, first_name=name.capitalize()
    )
    set_roles(user, CAST[name][0])
    return user.username, password


def sign_in(page: Page, site: Site, account: tuple[str, str]) -> None:
    """Sign in through the form."""
    page.goto(f"{site.url}/sign-in/")
    enter_password(page, account)
    page.wait_for_url(f"{site.url}/")
    for cookie in page.context.cookies():
        plant(f"cookie {cookie['name']}", cookie["value"])


def enter_password(page: Page, account: tuple[str, str]) -> None:
    """Send the form of the sign-in page."""
    page.get_by_label("User name").fill(account[0])
    page.get_by_label("Password").fill(account[1])
    page.get_by_role("button", name="Sign in", exact=True).click()


def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Call the function in another thread: Playwright's has an event loop, in which Django refuses database access."""

    def run() -> T:
        try:
            return function(*arguments)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(command: list[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    binary = str(Path(sys.executable).parent / command[0])
    with log.open("wb") as output:
        return subprocess.Popen(
            [binary, *command[1:]], env=environ, cwd=settings.BASE_DIR, stdout=output, stderr=subprocess.STDOUT
        )


def _wait_for(url: str, web: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if web.poll() is not None:
            raise RuntimeError(f"the web server ended with {web.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/sign-in/", timeout=5):  # noqa: S310  our own URL
                return
        except HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the web server did not answer within {START_SECONDS} s")
