"""A page that waited for a job loads once when that is over, also from a slow server: its polls have ended by then."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pytest
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Page, Request, Route, expect

from moderation.models import Purge
from moderation.operations.purges import draft_purge
from moderation.operations.scanning import scan_purge
from moderation.operations.undos import UndoPart, ask_undo
from tests.moderation.rooms import by_victor, confirm, make_channel, old_ids, preview, purge_now, run_to_end, write
from tests.pages.serving import Site, browse_as, make_account

T = TypeVar("T")

DELAY_MS = 3_000
"""Of the answer to the reload: three polls fit into it."""


@dataclass(frozen=True, slots=True)
class Desk:
    """A signed-in moderator's browser."""

    page: Page
    site: Site
    moderator: str


@pytest.fixture
def desk(site: Site) -> Iterator[Desk]:
    account = make_account("mona")
    with browse_as(account, site) as page:
        yield Desk(page, site, account[0])


def aside(act: Callable[[], T]) -> T:
    """In a thread of its own: Playwright's has an event loop, beside which Django refuses to ask Postgres."""

    def run() -> T:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def draft(user: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(6))
    return draft_purge(moderator=user, selection=by_victor(channel))


def queue(user: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(6))
    return confirm(user, preview(user, by_victor(channel)))


def take_back(user: User) -> Purge:
    channel = make_channel()
    write(channel, old_ids(6))
    purge = purge_now(user, by_victor(channel))
    ask_undo(purge.id, moderator=user, part=UndoPart())
    return purge


@pytest.mark.parametrize(
    ("arrange", "work", "heading"),
    [
        (draft, lambda purge: scan_purge(purge.id), "Remove 6 messages?"),
        (queue, run_to_end, "Removed 6 messages"),
        (take_back, run_to_end, "Brought back 6 messages"),
    ],
    ids=["preview", "running purge", "undo"],
)
def test_a_finished_job_asks_for_one_document(
    arrange: Callable[[User], Purge], work: Callable[[Purge], object], heading: str, desk: Desk
) -> None:
    page = desk.page
    purge = aside(lambda: arrange(User.objects.get(username=desk.moderator)))
    address = f"{desk.site.url}/purges/{purge.pk}/"
    page.goto(address)
    with page.expect_response(re.compile("/live/$")):
        pass
    documents: list[Request] = []
    page.on("request", lambda request: documents.append(request) if request.resource_type == "document" else None)
    waiting: list[Route] = []
    page.route(address, waiting.append)
    with page.expect_request(lambda request: request.resource_type == "document"):
        aside(partial(work, purge))
    page.wait_for_timeout(DELAY_MS)
    for route in waiting:
        route.continue_()
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    assert len(documents) == 1
