"""Every page is translated: in the pseudo-locale, text without brackets is data or was not wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.test import Client

from chatstore.domain.runs import RunState
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.store.redis import redis_client
from tests.chatstore.operations.jobs import make_ended_run
from tests.conftest import make_user
from tests.moderation.channels import VICTOR, everything, make_channel, old_ids, purge_now, write
from tests.pages.conftest import PreviewedPurge, make_previewed_purge
from tests.pages.pseudo_locale import pseudo_locale, untranslated
from tests.pages.test_access import CASES, GROUPS

PENDING: dict[str, str] = {}
"""Pages with text that is not wrapped yet, and the reason. A page without such text fails until it leaves the list."""

PENDING_TEXTS: dict[str, str] = {
    r"^At \d\d:\d\d .*": "chatstore.domain.schedules describes a schedule in English",
    r" does not exist\.$": "errors of the operations are English",
    r"^Beat has .*": "chatstore.operations.monitoring.console is English",
    r"^Nothing was ever written .*": "chatstore.operations.health.channel_health describes a bucket in English",
    r"^(Probe now|Check for live rows|Refresh stats|Repair|Rewrite|Compact|Merge files)$": (
        "moderation.operations.buckets.actions names the actions in English"
    ),
    r"^(Tombstones|Largest|Size of|Newest page).*": (
        "moderation.operations.buckets.charts names the charts in English"
    ),
    r"purges? (\d+ )?deleted [\d,]+ messages?": "moderation.operations.buckets.history describes purges in English",
}
"""Texts from lower layers, as patterns with the reason. A pattern that no page matches fails."""

HOSTILE = "<script>alert(1)</script>[RLO][U+001B]{{ 7|add:7 }}"
"""The name of a channel that other tests make, as pages show it."""

DATA = frozenset({"Chatstore", "UTC", "Harbour", "victor71", "Victor 71", "gc_grace", HOSTILE})


@dataclass(frozen=True, slots=True)
class Cast:
    """The account that reads the pages, what the placeholders of addresses stand for, and the names of all data."""

    ada: User
    placeholders: dict[str, int]
    names: frozenset[str]


def addresses() -> list[str]:
    """Return the addresses of the access table that show a page of ours. The admin's texts are mostly Django's."""
    listed = [
        address
        for route, method, address, statuses in CASES
        if method == "GET" and not route.startswith("admin/") and route != "metrics" and statuses["ada"] in (200, 404)
    ]
    return [
        *listed,
        # With other data: deleted messages, a purge at its end, a run that failed.
        "channels/{emptied}/",
        "channels/{emptied}/{deleted}/",
        "channels/{emptied}/health/",
        "purges/{done}/",
        "maintenance/runs/{run}/",
        "maintenance/runs/?job=nothing&since=2026-11-21",
        "maintenance/jobs/repair/preview/?cron=30+2+*+*+*&zone=UTC&is_enabled=1",
        "preferences/",
    ]


@pytest.fixture(scope="module")
def cast() -> Cast:
    previewed: PreviewedPurge = make_previewed_purge()
    ada = make_user("ada", group=GROUPS["ada"])
    emptied, ids = make_channel(), old_ids(12)
    write(emptied, ids, author=VICTOR)
    purge = purge_now(ada, everything(emptied))
    # Without signs of life of beat, maintenance pages have their notice.
    redis_client().delete("seen:beat", "seen:monitor")
    # Left by other tests: the names of their data are not known here.
    JobRun.objects.update(retry_of=None)
    JobRun.objects.all().delete()
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    run = make_ended_run("bookkeeping", at=postgres_now(), state=RunState.FAILED, error="⟦error⟧")
    more = {"emptied": emptied.pk, "deleted": ids[3], "done": purge.pk, "run": run.pk}
    names = {previewed.channel.name, emptied.name, ada.username, previewed.moderator.username, f"user {VICTOR}"}
    return Cast(ada, previewed.names | more, DATA | names)


@pytest.fixture(autouse=True)
def _pseudo_locale() -> Iterator[None]:
    with pseudo_locale():
        yield


def read(path: str, user: User | None) -> str:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client.get(path).content.decode()


def untranslated_at(address: str, cast: Cast) -> list[str]:
    path = "/" if address == "-" else "/" + address.format(**cast.placeholders)
    # Jobs that other tests registered.
    return untranslated(re.sub(r"job-[0-9a-f]{8}", "", read(path, cast.ada)), data=cast.names)


def is_pending(text: str) -> bool:
    return any(re.search(pattern, text) for pattern in PENDING_TEXTS)


@pytest.mark.parametrize("address", addresses())
def test_a_page_has_no_untranslated_text(address: str, cast: Cast) -> None:
    left = [text for text in untranslated_at(address, cast) if not is_pending(text)]
    if address in PENDING:
        assert left, f"{address} is translated: remove it from PENDING"
    else:
        assert not left


def test_no_pending_text_is_translated_by_now(cast: Cast) -> None:
    found = {text for address in addresses() if address not in PENDING for text in untranslated_at(address, cast)}
    for pattern in PENDING_TEXTS:
        assert any(re.search(pattern, text) for text in found), f"remove {pattern} from PENDING_TEXTS"


def test_the_sign_in_page_has_no_untranslated_text() -> None:
    assert not untranslated(read("/sign-in/?next=/purges/", None), data=DATA)


def test_text_that_was_not_wrapped_is_found() -> None:
    html = '<p title="Not wrapped">⟦Wrapped <b>here</b>⟧ <bdi>Mona</bdi> 12 bare</p>'
    assert untranslated(html) == ["Not wrapped", "12 bare"]
