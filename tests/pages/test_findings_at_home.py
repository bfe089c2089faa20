"""An operator's home page starts with the open findings, worst first, each with a link to its fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatstore.domain.runs import Severity
from chatstore.models import Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import MISSING_SURVIVORS, Found, open_finding
from chatstore.store.heartbeats import BEAT, WATCH, note_life
from chatstore.store.redis import redis_client
from tests.pages.conftest import Place

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _nothing_is_wrong() -> Iterator[None]:
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    note_life(BEAT)
    note_life(WATCH)
    yield
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    redis_client().delete("seen:beat", "seen:watch")


def findings_of(page: str) -> str:
    section = re.search(r'<section class="card" aria-labelledby="findings">.*?</section>', page, re.DOTALL)
    assert section
    return section[0]


def test_nothing_wrong_is_said_too(otto: User, sign_in: SignIn) -> None:
    html = findings_of(sign_in(otto).get("/").content.decode())
    assert "All checks passed" in html
    assert "notice" not in html


def test_the_worst_stands_first_and_each_leads_to_where_it_is_mended(otto: User, sign_in: SignIn, place: Place) -> None:
    open_finding("late repair", "messages", Found(Severity.AMBER, "a repair is late"))
    open_finding("missed run", "bookkeeping", Found(Severity.AMBER, "a run did not happen"))
    open_finding("heavy bucket", f"{place.channel.pk}:-3", Found(Severity.RED, "a bucket is heavy"))
    details = {"is_rewrite": False, "channels": [str(place.channel.pk)]}
    open_finding("stuck purge", str(place.purge.pk), Found(Severity.AMBER, "a purge is stuck", details))
    html = findings_of(sign_in(otto).get("/").content.decode())
    words = re.findall(r'class="finding-words">(.*?)</span>', html)
    assert words == ["a bucket is heavy", "a purge is stuck", "a run did not happen", "a repair is late"]
    for address in (
        f"/channels/{place.channel.pk}/health/-3/",
        f"/purges/{place.purge.pk}/",
        "/maintenance/jobs/bookkeeping/",
        "/health/",
    ):
        assert f'href="{address}"' in html, address
    assert "critical</span>" in html


def test_silent_beat_is_said_by_the_page_itself_even_when_nobody_watches(otto: User, sign_in: SignIn) -> None:
    redis_client().set("seen:beat", 1)
    assert "Beat has sent no heartbeat for" in findings_of(sign_in(otto).get("/").content.decode())
    assert "Beat has sent no heartbeat for" in sign_in(otto).get("/maintenance/").content.decode()


def test_a_silent_watch_is_said_too(otto: User, sign_in: SignIn) -> None:
    redis_client().delete("seen:watch")
    assert "No worker has run the monitor checks" in findings_of(sign_in(otto).get("/").content.decode())


def test_a_moderator_is_not_shown_what_is_an_operator_s(mona: User, sign_in: SignIn) -> None:
    open_finding("late repair", "messages", Found(Severity.RED, "a repair is late"))
    html = sign_in(mona).get("/").content.decode()
    assert "a repair is late" not in html
    assert "/maintenance/" not in html


def test_what_tells_of_a_loss_stays_until_somebody_sets_it_aside(otto: User, sign_in: SignIn) -> None:
    loss = open_finding(MISSING_SURVIVORS, "5:7", Found(Severity.RED, "A message is missing"))
    state = open_finding("heavy bucket", "5:7", Found(Severity.RED, "a bucket is heavy"))
    client = sign_in(otto)
    html = findings_of(client.get("/").content.decode())
    assert html.count("Acknowledge") == 1
    assert client.post(f"/findings/{state.pk}/set-aside/").status_code == 404
    assert client.post(f"/findings/{loss.pk}/set-aside/").status_code == 302
    loss.refresh_from_db()
    assert loss.closed_at is not None
    assert loss.details["set_aside_by"] == otto.get_username()
    assert "A message is missing" not in findings_of(client.get("/").content.decode())
