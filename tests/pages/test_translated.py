"""Every page is translated: in the pseudo-locale, text without brackets is data or was not wrapped."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from django.test import Client

from chatstore.domain.errors import WriteRefused
from chatstore.domain.runs import RunState, Severity
from chatstore.domain.schedules import Schedule
from chatstore.domain.texts import Duration, as_json, gettext_lazy, ngettext_lazy
from chatstore.models import Channel, ChatUser, Finding, GuildMember, JobRun, Report, ReportCase
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store.redis import redis_client
from moderation.domain.states import PurgeState
from moderation.models import Preferences, Purge
from moderation.operations.purging.wait_reasons import waiting_for
from tests.chatstore.operations.jobs import make_ended_run
from tests.conftest import make_user
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    write,
)
from tests.pages.access_table import CASES
from tests.pages.conftest import PreviewedPurge, make_previewed_purge
from tests.pages.pseudo_locale import OPEN, pseudo_locale, untranslated
from tests.pages.test_bad_input import EVERYWHERE, GETS, POSTS

HOSTILE = "<script>alert(1)</script>[RLO][U+001B]{{ 7|add:7 }}"
"""The name of a channel that other tests make, as pages show it."""

DATA = frozenset({"Chatstore", "UTC", "Harbour", "victor71", "Victor 71", "gc_grace", HOSTILE})

DATA_ROUTES = frozenset(
    {
        "metrics",
        "health/channels.csv",
        "health/channels.json",
        "audit/export.csv",
        "audit/export.json",
        "delete/suggestions/",
        "audit/suggestions/",
    }
)
"""Routes that answer with data for programs."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The account that reads the pages, what the placeholders of URLs stand for, and the names of all data."""

    ada: User
    placeholders: dict[str, int | str]
    names: frozenset[str]


def urls() -> list[str]:
    """Return the URLs of the access table that show a page of ours. The admin's texts are mostly Django's."""
    listed = [
        url
        for route, method, url, statuses in CASES
        if method == "GET" and statuses["ada"] in (200, 404)
        if route not in DATA_ROUTES and not route.startswith("admin/")
    ]
    return [
        *listed,
        # With other data: deleted messages, a purge at its end, a run that failed.
        "channels/{emptied}/",
        "channels/{emptied}/{deleted}/",
        "channels/{emptied}/health/",
        "health/channels/?q=no+such+channel",
        "purges/{done}/",
        "maintenance/runs/{run}/",
        "maintenance/runs/?job=nothing&since=2026-11-21",
        "maintenance/jobs/repair/preview/?cron=30+2+*+*+*&zone=UTC&is_enabled=1",
        "preferences/",
    ]


@pytest.fixture(scope="module")
def cast() -> Cast:
    previewed: PreviewedPurge = make_previewed_purge()
    ada = make_user("ada", group="admins")
    emptied, ids = make_channel(), old_ids(12)
    write(emptied, ids, author=VICTOR)
    purge = purge_now(ada, everything(emptied))
    # Without signs of life of beat, maintenance pages have their notice.
    redis_client().delete("seen:beat", "seen:monitor")
    # Left by other tests: the names of their data are not known here.
    GuildMember.objects.filter(user_id=VICTOR).delete()
    Report.objects.all().delete()
    ReportCase.objects.all().delete()
    JobRun.objects.update(retry_of=None)
    JobRun.objects.all().delete()
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    run = make_ended_run("bookkeeping", at=postgres_now(), state=RunState.FAILED, error="⟦error⟧")
    more: dict[str, int | str] = {"emptied": emptied.pk, "deleted": ids[3], "done": purge.pk, "run": run.pk}
    names = {previewed.channel.name, emptied.name, ada.username, previewed.moderator.username, f"user {VICTOR}"}
    # Titles of names have them, if other tests named the authors.
    handles = ChatUser.objects.filter(pk__in=(VICTOR, WILMA)).values_list("name", flat=True)
    return Cast(ada, previewed.names | more, DATA | names | {*handles})


@pytest.fixture(autouse=True)
def _pseudo_locale() -> Iterator[None]:
    with pseudo_locale():
        yield


def read(path: str, user: User | None) -> str:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client.get(path).content.decode()


def without_guilds(html: str) -> str:
    """Leave out the guilds beside a page, which are those of other tests."""
    return re.sub('<ul class="guilds(?: many)?">.*?</ul>', "", html, flags=re.DOTALL)


def untranslated_at(url: str, cast: Cast) -> list[str]:
    path = "/" if url == "-" else "/" + url.format(**cast.placeholders)
    html = without_guilds(read(path, cast.ada))
    # Jobs that other tests registered.
    return untranslated(re.sub(r"job-[0-9a-f]{8}", "", html), data=cast.names)


@pytest.mark.parametrize("url", urls())
def test_a_page_has_no_untranslated_text(url: str, cast: Cast) -> None:
    assert not untranslated_at(url, cast)


HOLDS: tuple[dict[str, str], ...] = (
    {},
    {"reason": "x" * 20_000},
    {"reason": "court order"},
    {"reason": "court order", "user": "seven"},
    {"reason": "court order", "channel": "7"},
    {"reason": "court order", "message": "not a link"},
    {"reason": "court order", "message": "not a link", "user": "7"},
)
SCHEDULES: tuple[dict[str, str], ...] = (
    {},
    {"cron": "2:30", "zone": "UTC"},
    {"cron": "61 * * * *", "zone": "UTC"},
    {"cron": "0 0 31 2 *", "zone": "UTC"},
    {"cron": "0 5 * * *", "zone": "Mars/Olympus"},
    {"cron": "0 5 * * *", "zone": "UTC", "opens": "05:00"},
    {"cron": "0 5 * * *", "zone": "UTC", "opens": "05:00", "closes": "05:00"},
    {"cron": "0 5 * * *", "zone": "UTC", "opens": "noon"},
)
HASH = "0" * 64
FORMS: tuple[tuple[str, dict[str, str]], ...] = (
    *(("holds/", fields) for fields in HOLDS),
    *(("maintenance/jobs/repair/", fields) for fields in SCHEDULES),
    ("purges/{purge}/confirm/", {"reason": "spam", "manifest_hash": HASH}),
    ("purges/{purge}/confirm/", {"reason": "spam"}),
    ("purges/{purge}/confirm/", {"manifest_hash": HASH}),
    ("purges/{done}/confirm/", {"reason": "spam", "manifest_hash": HASH}),
    ("purges/{purge}/exclude/", {"manifest_hash": HASH}),
    ("purges/{purge}/exclude/", {"manifest_hash": HASH, "message_id": "7"}),
    ("purges/{done}/exclude/", {"manifest_hash": HASH, "message_id": "7"}),
    ("purges/{done}/pause/", {}),
    ("purges/{done}/resume/", {}),
    ("purges/{done}/retry/", {}),
    ("purges/{done}/dance/", {}),
    ("purges/{purge}/undo/", {}),
    ("purges/{done}/undo/", {"selected": "1"}),
    ("purges/{done}/undo/", {"selected": "1", "message_id": "7"}),
    ("purges/{done}/undo/", {"reason": ""}),
    ("channels/{emptied}/{deleted}/undo/", {"purge": "{purge}"}),
    ("purges/{done}/erase/", {}),
    ("purges/{done}/erase/", {"reason": "x" * 20_000}),
    ("purges/{purge}/erase/", {"reason": "court order"}),
    ("purges/{done}/erase/approve/", {"erasure": "7"}),
    ("purges/{done}/erase/approve/", {"erasure": "7", "is_final": "on"}),
    ("preferences/", {"time_zone": "Mars/Olympus", "language": "xx"}),
    ("maintenance/jobs/nothing/run/", {}),
    ("maintenance/runs/999999999/again/", {}),
    ("findings/999999/acknowledge/", {}),
    ("holds/999999/lift/", {}),
)
"""Malformed input of forms, by URL, besides the selections and URLs of `test_bad_input`."""


def shown_error(html: str) -> str:
    """Return the message of an error page or of a form."""
    found = re.search(r'<p class="notice(?: error)?"[^>]*>(.*?)</p>', html, re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def test_errors_are_translated(cast: Cast) -> None:
    client = Client(raise_request_exception=True)
    client.force_login(cast.ada)
    sent: list[tuple[str, Mapping[str, str | list[str]]]] = [
        (f"channels/{cast.placeholders['channel']}/delete/", fields) for fields, _ in POSTS
    ]
    sent += [("delete/", fields) for fields, _ in EVERYWHERE]
    sent += FORMS
    responses = [
        (path, client.post("/" + path.format(**cast.placeholders), fields_of(fields, cast))) for path, fields in sent
    ]
    responses += [(path, client.get(path.format(**cast.placeholders))) for path, status, _ in GETS if status != 200]
    messages, left = set(), {}
    for path, response in responses:
        html = without_guilds(response.content.decode())
        assert response.status_code in (200, 400, 404), path
        if found := untranslated(html, data=cast.names):
            left[path] = found
        messages.add(shown_error(html))
    assert not left
    assert len({message for message in messages if message.startswith(OPEN)}) >= 60


def fields_of(fields: Mapping[str, str | list[str]], cast: Cast) -> dict[str, str | list[str]]:
    return {
        name: value.format(**cast.placeholders) if isinstance(value, str) and value.startswith("{") else value
        for name, value in fields.items()
    }


def test_a_run_shows_its_stored_texts_translated(cast: Cast) -> None:
    text = ngettext_lazy("Node %(nodes)s is down.", "Nodes %(nodes)s are down.", 1, nodes=("127.0.0.2",))
    run = make_ended_run("repair", at=postgres_now(), state=RunState.FAILED, error=text)
    result = {"gc_grace": "restored", "tombstones on 127.0.0.2": "below the listed minimum", "nodes": 2}
    result |= {"afterwards": as_json(text), "was": as_json(Duration(172_800)), "found empty": 3}
    JobRun.objects.filter(pk=run.pk).update(result=result)
    going = JobRun.objects.create(
        job="repair_bucket",
        subject="5:7",
        due_at=postgres_now(),
        state=RunState.RUNNING,
        progress={"done": 1, "total": 2, "what": as_json(gettext_lazy("measuring the bucket again"))},
    )
    try:
        for path in (f"/maintenance/runs/{run.pk}/", f"/maintenance/runs/{going.pk}/", "/maintenance/", "/"):
            html = read(path, cast.ada)
            assert not untranslated(html, data=cast.names), path
        html = read(f"/maintenance/runs/{run.pk}/", cast.ada)
        assert "⟦Node 127.0.0.2 is down.⟧" in html
        assert "⟦2 days⟧" in html
        assert JobRun.objects.get(pk=run.pk).error == "Node 127.0.0.2 is down."
    finally:
        JobRun.objects.filter(pk__in=(run.pk, going.pk)).delete()


def test_a_finding_is_shown_translated(cast: Cast) -> None:
    schedule = Schedule("30 2 * * *", "UTC")
    when = dt.datetime(2026, 3, 29, 2, 30, tzinfo=dt.UTC)
    summary = gettext_lazy("%(job)s failed: %(error)s", job=gettext_lazy("Repair"), error=schedule.description)
    summary = gettext_lazy("%(summary)s It is retried at %(time)s.", summary=summary, time=when)
    finding = open_finding("failed run", "repair", Problem(Severity.WARNING, summary, {"job": "repair"}))
    try:
        Preferences.objects.update_or_create(account=cast.ada, defaults={"time_zone": "Asia/Kolkata"})
        html = read("/", cast.ada)
        assert not untranslated(html, data=cast.names | {"Asia/Kolkata"})
        assert "08:00" in html
    finally:
        Preferences.objects.filter(pk=cast.ada.pk).delete()
        Finding.objects.filter(pk=finding.pk).delete()


def written_channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(5))
    return channel


def test_the_reason_of_a_wait_is_shown_translated(cast: Cast) -> None:
    waiting = confirm(cast.ada, preview(cast.ada, everything(written_channel())))
    refused = WriteRefused(gettext_lazy("The clock of process %(process)s is off.", process="7"))
    Purge.objects.filter(pk=waiting.pk).update(state=PurgeState.WAITING, wait_reason=waiting_for(refused))
    names = cast.names | {channel.name for channel in Channel.objects.all()}
    html = read(f"/purges/{waiting.pk}/", cast.ada)
    assert "The clock of process 7 is off." in html
    assert not untranslated(html, data=names)
    lock_channel(waiting.selection["channels"][0], job="import:7", lease_seconds=60)
    html = read(f"/purges/{waiting.pk}/", cast.ada)
    assert "⟦Waiting behind an import into the channel⟧" in html
    assert not untranslated(html, data=names)


def test_the_sign_in_page_has_no_untranslated_text() -> None:
    assert not untranslated(read("/sign-in/?next=/purges/", None), data=DATA)


def test_text_that_was_not_wrapped_is_found() -> None:
    html = '<p title="Not wrapped">⟦Wrapped <b>here</b>⟧ <bdi>Mona</bdi> 12 bare</p>'
    assert untranslated(html) == ["Not wrapped", "12 bare"]
