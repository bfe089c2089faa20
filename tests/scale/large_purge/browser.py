"""A moderator's browser: cookies, forms, and the poll of a purge's page each second, as htmx does it."""

from __future__ import annotations

import html
import http.client
import re
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

POLL_SECONDS = 1.0
TIMEOUT_SECONDS = 60

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_HASH = re.compile(r'name="manifest_hash" value="([0-9a-f]{64})"')
_POLL = re.compile(r'hx-get="(/purges/\d+/live/[^"]*)"')


class UnexpectedAnswer(Exception):
    """The server answered with another status than the page has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the web server."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def manifest_hash(self) -> str:
        """The hash in the form that confirms a preview."""
        found = _HASH.search(self.text)
        if found is None:
            raise UnexpectedAnswer("the page has no form to confirm the preview")
        return found[1]

    @property
    def polls(self) -> str:
        """The path that the page polls, or ""."""
        found = _POLL.search(self.text)
        return html.unescape(found[1]) if found else ""


class Browser:
    """A signed-in browser. seconds: of all requests, by what was requested."""

    def __init__(self, url: str, *, username: str, password: str) -> None:
        self._host = urlsplit(url).netloc
        self._cookies: dict[str, str] = {}
        self._token = ""
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.get("/sign-in/", name="sign-in page")
        self.post("/sign-in/", {"username": username, "password": password}, name="sign in")

    def get(self, path: str, *, name: str) -> Answer:
        """Request a page. Raises `UnexpectedAnswer`."""
        answer = self._request("GET", path, name=name)
        token = _TOKEN.search(answer.text)
        self._token = token[1] if token else self._token
        if answer.status != 200:
            raise UnexpectedAnswer(f"{path} answered {answer.status}")
        return answer

    def post(self, path: str, fields: Mapping[str, str], *, name: str) -> str:
        """Post a form of the last page; return the path to which it redirects. Raises `UnexpectedAnswer`."""
        body = urlencode({"csrfmiddlewaretoken": self._token, **fields})
        answer = self._request("POST", path, name=name, body=body)
        if answer.status != 302:
            raise UnexpectedAnswer(f"POST {path} answered {answer.status}: {answer.text[:2_000]}")
        return urlsplit(answer.headers["location"]).path

    def watch(self, path: str, *, name: str) -> Answer:
        """Open the page of a purge, and poll until it has nothing to wait for; return the page as it is then."""
        while True:
            page = self.get(path, name=f"{name} page")
            poll = page.polls
            while poll:
                time.sleep(POLL_SECONDS)
                answer = self._request("GET", poll, name="")
                if answer.status not in (200, 204):
                    raise UnexpectedAnswer(f"{poll} answered {answer.status}")
                self.seconds[f"{name} poll, {'changed' if answer.text else 'unchanged'}"] += self.seconds.pop("")
                if answer.headers.get("hx-trigger") == "reloadPage":
                    break
                poll = answer.polls or poll
            else:
                return page

    def _request(self, method: str, path: str, *, name: str, body: str | None = None) -> Answer:
        headers = {"Cookie": "; ".join(f"{key}={value}" for key, value in self._cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self._host, timeout=TIMEOUT_SECONDS)
        began = time.perf_counter()
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        self.seconds[name].append(time.perf_counter() - began)
        for cookie in response.headers.get_all("Set-Cookie", []):
            self._cookies |= {key: morsel.value for key, morsel in SimpleCookie(cookie).items()}
        return Answer(response.status, text, {key.lower(): value for key, value in response.getheaders()})
