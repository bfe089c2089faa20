"""An operator's home page starts with the open findings, worst first, each with a link to its fix."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from chatstore.domain.runs import Severity
from chatstore.models import Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store.heartbeats import BEAT, MONITOR, record_heartbeat
from chatstore.store.redis import redis_client
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_open_findings() -> Iterator[None]:
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    record_heartbeat(BEAT)
    record_heartbeat(MONITOR)
    yield
    Finding.objects.filter(closed_at=None).update(closed_at=postgres_now())
    redis_client().delete("seen:beat", "seen:monitor")


def findings_of(page: str) -> str:
    section = re.search(r'<section class="card" aria-labelledby="findings">.*?</section>', page, re.DOTALL)
    assert section
    return section[0]


def test_a_page_without_findings_states_it(otto: User, sign_in: SignIn) -> None:
    html = findings_of(sign_in(otto).get("/").content.decode())
    assert "All checks passed" in html
    assert "notice" not in html


def test_the_worst_finding_is_first_and_each_links_to_its_fix(
    otto: User, sign_in: SignIn, previewed: PreviewedPurge
) -> None:
    open_finding("late repair", "messages", Problem(Severity.WARNING, "a repair is late"))
    open_finding("missed run", "bookkeeping", Problem(Severity.WARNING, "a run did not happen"))
    open_finding("heavy bucket", f"{previewed.channel.pk}:-3", Problem(Severity.CRITICAL, "a bucket is heavy"))
    details = {"is_rewrite": False, "channels": [str(previewed.channel.pk)]}
    open_finding("stuck purge", str(previewed.purge.pk), Problem(Severity.WARNING, "a purge is stuck", details))
    html = findings_of(sign_in(otto).get("/").content.decode())
    summaries = re.findall(r'class="finding-text">(.*?)</span>', html)
    assert summaries == ["a bucket is heavy", "a purge is stuck", "a run did not happen", "a repair is late"]
    for url in (
        f"/channels/{previewed.channel.pk}/health/-3/",
        f"/purges/{previewed.purge.pk}/",
        "/maintenance/jobs/bookkeeping/",
        "/health/",
    ):
        assert f'href="{url}"' in html, url
    assert "critical</span>" in html


def test_a_missing_heartbeat_is_shown_even_without_the_monitor(otto: User, sign_in: SignIn) -> None:
    redis_client().set("seen:beat", 1)
    assert "The scheduler (Celery beat) has sent no heartbeat for" in findings_of(
        sign_in(otto).get("/").content.decode()
    )
    assert (
        "The scheduler (Celery beat) has sent no heartbeat for" in sign_in(otto).get("/maintenance/").content.decode()
    )


def test_a_stopped_monitor_is_shown_too(otto: User, sign_in: SignIn) -> None:
    redis_client().delete("seen:monitor")
    client = sign_in(otto)
    for path in ("/", "/health/"):
        html = findings_of(client.get(path).content.decode())
        assert "No worker has run the monitor checks" in html
        assert "All checks passed" not in html


@pytest.fixture
def _no_open_repair() -> Iterator[None]:
    JobRun.objects.open().filter(job="repair", subject="").delete()
    yield
    JobRun.objects.open().filter(job="repair", subject="").delete()


@pytest.mark.usefixtures("_no_open_repair")
def test_a_repair_is_started_from_a_finding_which_then_shows_its_state(otto: User, sign_in: SignIn) -> None:
    open_finding("late repair", "messages", Problem(Severity.CRITICAL, "a repair is late"))
    client = sign_in(otto)
    for path in ("/", "/health/"):
        assert "Repair now" in findings_of(client.get(path).content.decode())
    (url,) = re.findall(r'action="(/maintenance/jobs/repair/run/)"', findings_of(client.get("/").content.decode()))
    started = client.post(url)
    run = JobRun.objects.open().get(job="repair", subject="")
    assert (started.status_code, started["Location"]) == (302, f"/maintenance/runs/{run.pk}/")
    assert run.requested_by == otto
    html = findings_of(client.get("/").content.decode())
    assert "Repair now" not in html
    assert "queued</span>" in html
    assert f'href="/maintenance/runs/{run.pk}/"' in html


@pytest.mark.usefixtures("_no_open_repair")
def test_a_run_that_is_planned_for_later_can_be_started_now(otto: User, sign_in: SignIn) -> None:
    later = postgres_now() + dt.timedelta(hours=2)
    JobRun.objects.create(job="repair", subject="", due_at=later)
    open_finding("failed run", "repair", Problem(Severity.WARNING, "it failed", {"job": "repair", "run": 7}))
    assert "Repair now" in findings_of(sign_in(otto).get("/").content.decode())


def test_a_missed_job_is_run_from_its_finding_unless_it_no_longer_exists(otto: User, sign_in: SignIn) -> None:
    JobRun.objects.open().filter(job="probe", subject="").delete()
    due = {"due_at": postgres_now().isoformat()}
    open_finding("missed run", "probe", Problem(Severity.WARNING, "it did not run", {"job": "probe", **due}))
    open_finding("missed run", "gone", Problem(Severity.WARNING, "it did not run", {"job": "gone", **due}))
    html = findings_of(sign_in(otto).get("/").content.decode())
    assert re.findall(r'action="(/maintenance/[^"]*)"', html) == ["/maintenance/jobs/probe/run/"]
    assert "Run now" in html


def test_moderators_do_not_see_findings_for_operators(mona: User, sign_in: SignIn) -> None:
    open_finding("late repair", "messages", Problem(Severity.CRITICAL, "a repair is late"))
    html = sign_in(mona).get("/").content.decode()
    assert "a repair is late" not in html
    assert "/maintenance/" not in html


def test_a_data_loss_finding_stays_until_it_is_acknowledged(otto: User, sign_in: SignIn) -> None:
    loss = open_finding(MISSING_SURVIVORS, "5:7", Problem(Severity.CRITICAL, "A message is missing"))
    state = open_finding("heavy bucket", "5:7", Problem(Severity.CRITICAL, "a bucket is heavy"))
    client = sign_in(otto)
    html = findings_of(client.get("/").content.decode())
    assert html.count("Acknowledge") == 1
    assert client.post(f"/findings/{state.pk}/acknowledge/").status_code == 404
    assert client.post(f"/findings/{loss.pk}/acknowledge/").status_code == 302
    loss.refresh_from_db()
    assert loss.closed_at is not None
    assert loss.details["acknowledged_by"] == otto.get_username()
    assert "A message is missing" not in findings_of(client.get("/").content.decode())
