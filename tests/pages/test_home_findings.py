"""An operator's home page starts with the open findings, worst first, each with a link to its fix."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest
from django.test import Client

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.roles import Role
from chatstore.domain.runs import RunState, Severity
from chatstore.models import BucketDeletes, Channel, Finding, JobRun
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import compaction
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import HEAVY_BUCKET, MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.monitoring.checks import BROKEN_SCHEDULE
from chatstore.store import cassandra, figures, ledger
from chatstore.store.heartbeats import BEAT, MONITOR, record_heartbeat
from chatstore.store.redis import redis_client
from moderation.operations.buckets import actions
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel
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
    html = findings_of(sign_in(otto).get("/").content.decode())
    assert "The scheduler (Celery beat) has sent no heartbeat for" in html
    assert "Start or restart its process: celery -A chatstore beat." in html
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
def test_a_repair_is_not_started_from_a_finding_while_cassandra_is_down(
    otto: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_finding("late repair", "messages", Problem(Severity.CRITICAL, "a repair is late"))
    client = sign_in(otto)
    reason = "This job needs Cassandra. No node of Cassandra is up."
    assert reason not in client.get("/").content.decode()
    monkeypatch.setattr(cassandra, "connected_hosts", lambda: [("10.0.0.1", False, "dc1")])
    html = findings_of(client.get("/").content.decode())
    button = re.search(r'<button class="button small"\s+disabled aria-describedby="([^"]+)">\s*<span>Repair now', html)
    assert button
    assert re.search(rf'id="{button[1]}">\s*{re.escape(reason)}', html)


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


def open_heavy_finding(channel: Channel, bucket: int) -> None:
    """Have a bucket with too many tombstones, and the finding about it."""
    ledger.ensure_row(channel.pk, bucket)
    figures.note_figures(channel.pk, bucket, {"tombstones": 61_204}, source="probe", measured_at=postgres_now())
    problem = Problem(Severity.CRITICAL, f"{channel.name} is heavy", {"tombstones": 61_204})
    open_finding(HEAVY_BUCKET, f"{channel.pk}:{bucket}", problem)


@pytest.mark.parametrize(("ages", "action"), [((1, None), "repair"), ((1, 0), "rewrite"), ((90, 0), "compact")])
def test_the_action_that_the_page_of_a_bucket_recommends_is_a_button_of_its_finding(
    ages: tuple[int, int | None], action: str, otto: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ages: how many days ago messages were deleted, and the bucket was repaired."""
    channel, now, (deleted, repaired) = make_channel(), postgres_now(), ages
    open_heavy_finding(channel, -3)
    note_deletes(channel.pk, -3, 1)
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=now - dt.timedelta(days=deleted))
    began_at = None if repaired is None else now - dt.timedelta(days=repaired)
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, began_at))
    client = sign_in(otto)
    bucket_page = f"/channels/{channel.pk}/health/-3/"
    lists = ("/", "/health/", f"/channels/{channel.pk}/health/")
    for path in lists:
        html = client.get(path).content.decode()
        (form,) = re.findall(rf'<form[^>]*action="{bucket_page}(?:\w+)/".*?</form>', html, re.DOTALL)
        assert f'action="{bucket_page}{action}/"' in form
        assert "csrfmiddlewaretoken" in form
    recommended = re.search(
        r'<summary class="button small primary">\s*(\w+) ', client.get(bucket_page).content.decode()
    )
    assert recommended
    assert recommended[1].lower() == action
    # Beside its actions, the notice does not offer one of them again.
    assert client.get(bucket_page).content.decode().count(f'action="{bucket_page}{action}/"') == 1

    assert client.post(f"{bucket_page}{action}/")["Location"] == bucket_page
    run = JobRun.objects.open().get(subject=f"{channel.pk}:-3")
    for path in lists:
        html = client.get(path).content.decode()
        assert f'action="{bucket_page}' not in html
        assert f'href="/maintenance/runs/{run.pk}/"' in html
    run.delete()


def open_loss(channel: Channel, bucket: int) -> Finding:
    return open_finding(
        MISSING_SURVIVORS, f"{channel.pk}:{bucket}:47.0", Problem(Severity.CRITICAL, "A message is missing")
    )


@pytest.mark.parametrize(("open_one", "action"), [(open_heavy_finding, "compact"), (open_loss, "repair")])
def test_no_action_is_offered_where_the_user_may_request_no_runs(
    open_one: Callable[[Channel, int], object], action: str, sign_in: SignIn
) -> None:
    operator = make_user("olga", group=None)
    give(operator, Role.OPERATOR)
    private, public = make_channel(), make_channel(guild="Harbour")
    for channel in (private, public):
        open_one(channel, -3)
    client = sign_in(operator)
    offered = re.findall(r'action="/channels/(\d+)/health/-3/', findings_of(client.get("/").content.decode()))
    assert offered == [str(public.pk)]
    assert client.post(f"/channels/{private.pk}/health/-3/{action}/").status_code == 404


def test_missing_messages_are_repaired_from_their_finding(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    # Over the limit of tombstones as well, which has another remedy once a repair covers the deletes.
    open_heavy_finding(channel, -3)
    loss = open_loss(channel, -3)
    client, bucket_page = sign_in(otto), f"/channels/{channel.pk}/health/-3/"
    for path in ("/", "/health/", f"/channels/{channel.pk}/health/"):
        html = client.get(path).content.decode()
        (after,) = re.findall(r"A message is missing(?:(?!finding-text|finding-notice).)*", html, re.DOTALL)
        offered = re.findall(r'action="([^"]+)"', after)[:2]
        assert offered == [f"{bucket_page}repair/", f"/findings/{loss.pk}/acknowledge/"], path
    # The page of the bucket has its actions itself.
    assert client.get(bucket_page).content.decode().count(f'action="{bucket_page}repair/"') == 1

    assert client.post(f"{bucket_page}repair/").status_code == 302
    run = JobRun.objects.open().get(subject=f"{channel.pk}:-3")
    assert (run.job, run.requested_by) == ("repair_bucket", otto)
    html = findings_of(client.get("/").content.decode())
    assert f'action="{bucket_page}' not in html
    assert html.count(f'href="/maintenance/runs/{run.pk}/"') == 2
    # Until the repair has ended, it is unknown what it brings back.
    for path in ("/", f"/channels/{channel.pk}/health/", bucket_page):
        html = client.get(path).content.decode()
        assert "Repair is queued." in html, path
        assert f'action="/findings/{loss.pk}/acknowledge/"' not in html, path
    answer = client.post(f"/findings/{loss.pk}/acknowledge/")
    assert (answer.status_code, Finding.objects.get(pk=loss.pk).closed_at) == (400, None)
    assert "Acknowledge the finding when it has ended." in answer.content.decode()
    JobRun.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert "Repair is running." in client.get(bucket_page).content.decode()
    run.delete()
    assert f'action="/findings/{loss.pk}/acknowledge/"' in client.get(bucket_page).content.decode()


def test_moderators_do_not_see_findings_for_operators(mona: User, sign_in: SignIn) -> None:
    open_finding("late repair", "messages", Problem(Severity.CRITICAL, "a repair is late"))
    html = sign_in(mona).get("/").content.decode()
    assert "a repair is late" not in html
    assert "/maintenance/" not in html


@pytest.mark.parametrize(
    "case",
    [
        (HEAVY_BUCKET, {"bytes": 61_000_000}, "To make it smaller, delete messages of this period"),
        (MISSING_SURVIVORS, {}, "Repair the bucket"),
        (HEAVY_BUCKET, {"tombstones": 61_000}, ""),
    ],
)
def test_a_finding_that_no_button_resolves_names_what_to_do(
    case: tuple[str, dict[str, int], str], otto: User, sign_in: SignIn, previewed: PreviewedPurge
) -> None:
    kind, details, advice = case
    channel = previewed.channel.pk
    open_finding(kind, f"{channel}:-3", Problem(Severity.CRITICAL, "something is wrong", details))
    client = sign_in(otto)
    for path in ("/", "/health/", f"/channels/{channel}/health/", f"/channels/{channel}/health/-3/"):
        html = client.get(path).content.decode()
        assert ('class="advice' in html) == bool(advice), path
        assert advice in html, path


def test_a_broken_schedule_names_what_to_do(otto: User, sign_in: SignIn) -> None:
    open_finding(BROKEN_SCHEDULE, "expire", Problem(Severity.WARNING, "It no longer runs", {"job": "expire"}))
    html = findings_of(sign_in(otto).get("/").content.decode())
    assert "Save a valid schedule on the job’s page." in html
    assert 'href="/maintenance/jobs/expire/"' in html


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


@pytest.mark.parametrize(("open_one", "label"), [(open_heavy_finding, "Compact"), (open_loss, "Repair")])
def test_no_action_on_a_bucket_is_started_from_its_finding_while_cassandra_is_down(
    open_one: Callable[[Channel, int], object],
    label: str,
    otto: User,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel, deleted_at = make_channel(), postgres_now() - dt.timedelta(days=90)
    open_one(channel, -3)
    note_deletes(channel.pk, -3, 1)
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=deleted_at)
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, postgres_now()))
    client, action = sign_in(otto), f'action="/channels/{channel.pk}/health/-3/{label.lower()}/"'
    reason = "This job needs Cassandra. No node of Cassandra is up."
    for path in ("/", f"/channels/{channel.pk}/health/"):
        html = client.get(path).content.decode()
        assert action in html
        assert reason not in html
    monkeypatch.setattr(cassandra, "connected_hosts", lambda: [("10.0.0.1", False, "dc1")])
    for path in ("/", f"/channels/{channel.pk}/health/"):
        html = client.get(path).content.decode()
        assert action not in html
        button = re.search(rf'<button class="button small"\s+disabled aria-describedby="(.+?)">\s*<span>{label}', html)
        assert button, path
        assert re.search(rf'id="{button[1]}">\s*{re.escape(reason)}', html)


def test_a_heavy_bucket_says_why_nothing_is_offered_while_it_cannot_be_known(
    otto: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_keys: object) -> NoReturn:
        raise StoreUnavailable

    channel = make_channel()
    open_heavy_finding(channel, -3)
    sentence = "What resolves this is offered once Cassandra is available. No node of Cassandra is up."
    client = sign_in(otto)
    assert sentence not in " ".join(client.get("/").content.decode().split())
    monkeypatch.setattr(actions, "find_obstacles", fail)
    monkeypatch.setattr(cassandra, "connected_hosts", lambda: [("10.0.0.1", False, "dc1")])
    assert sentence in " ".join(client.get("/").content.decode().split())
