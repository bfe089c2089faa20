"""A reader that opens pages of a channel all the time and records each result."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from django.db import connections
from django.test import Client

from chatstore.models.users import User
from chatstore.operations.gateway.timeline import PAGE_SIZE

_SHOWN = re.compile(r'<article [^>]*id="m(-?\d+)"')


@dataclass(frozen=True, slots=True)
class PageResult:
    """The result of one page. missing: ids that belong on it and were stored before the request."""

    status: int
    ids: Sequence[int]
    missing: Collection[int]
    began: float
    ended: float

    @property
    def is_complete(self) -> bool:
        """True for a full page without missing messages."""
        return self.status == 200 and len(self.ids) == PAGE_SIZE and not self.missing


class PageReader:
    """Open the newest page of a channel and those around some ids in turn, until `end` is called.

    kept: messages that must be on a page if they were stored before its request; the mappings may grow.
    """

    def __init__(
        self, user: User, channel_id: int, *, around: Sequence[int], kept: Sequence[Mapping[int, str]]
    ) -> None:
        self.pages: list[PageResult] = []
        self._urls = [f"/channels/{channel_id}/", *(f"/channels/{channel_id}/?around={each}" for each in around)]
        self._kept = kept
        self._user = user
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def read_pages(self, count: int) -> list[PageResult]:
        """Wait until every URL was opened `count` more times; return those pages."""
        start = len(self.pages)
        # The page in progress may have been requested before.
        wanted = count * len(self._urls) + 1
        while len(self.pages) < start + wanted and self._thread.is_alive():
            time.sleep(0.01)
        return self.pages[start + 1 :]

    def end(self) -> None:
        """Stop reading; raise any error of a page."""
        self._stop.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            client = Client(SERVER_NAME="localhost")
            client.force_login(self._user)
            for url in cycle(self._urls):
                if self._stop.is_set():
                    return
                self.pages.append(self._open(client, url))
        except Exception as failed:  # noqa: BLE001  it is raised where the test waits
            self._failed = failed
        finally:
            connections.close_all()

    def _open(self, client: Client, url: str) -> PageResult:
        stored = [message_id for known in self._kept for message_id in tuple(known)]
        began = time.monotonic()
        answer = client.get(url)
        ended = time.monotonic()
        ids = sorted(map(int, _SHOWN.findall(answer.content.decode())))
        # No stored message may be missing above the newest page; on other pages both ends are open.
        high = ids[-1] if "around" in url and ids else float("inf")
        missing = {one for one in stored if ids and ids[0] <= one <= high}.difference(ids)
        return PageResult(answer.status_code, ids, missing, began, ended)
