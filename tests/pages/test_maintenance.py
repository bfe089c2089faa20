"""An operator sees past and future runs, starts, stops and repeats them, and edits schedules, with plain forms."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Never

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.buckets import bucket_of
from chatstore.domain.runs import RunState
from chatstore.models import BucketDeletes, Channel, Finding, Guild, JobRun, JobSchedule
from chatstore.models.users import User
from chatstore.operations.bucket_jobs import compaction
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import claim_run, create_due_runs, request_run, work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.monitoring.checks import MISSED_RUN, check_runs
from chatstore.store import cassandra
from moderation.presentation.formats import format_datetime
from tests.chatstore.channels import fresh_id
from tests.chatstore.operations.jobs import configure_only_job, make_ended_run, make_job, register_only
from tests.moderation.channels import make_channel, old_ids, write

SignIn = Callable[[User], Client]


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> str:
    return configure_only_job(monkeypatch)


@pytest.fixture
def page(otto: User, sign_in: SignIn) -> Client:
    return sign_in(otto)


def read(page: Client, path: str, fields: Mapping[str, str] | None = None, *, status: int = 200) -> str:
    response = page.get(path, fields)
    assert response.status_code == status
    return re.sub(r"\s+", " ", response.content.decode())


def test_the_table_of_jobs_has_schedule_last_run_next_run_and_state(page: Client, job: str) -> None:
    make_ended_run(job, at=postgres_now() - dt.timedelta(days=1))
    run = make_ended_run(job, at=postgres_now(), state=RunState.FAILED)
    html = read(page, "/maintenance/")
    row = row_of(html, job)
    assert "At 02:30 every day" in row
    assert "Europe/Berlin" in row
    assert re.findall(r"/maintenance/runs/(\d+)/", row) == [str(run.pk)]
    assert ">failed</span>" in row
    # With the day of the week: the last run, which is now, may be at half past two, too.
    assert len(re.findall(r">\w{3} \d+ \w+( \d{4})?, 02:30</time>", row)) == 1
    assert ">scheduled</span>" in row
    assert f"/maintenance/jobs/{job}/run/" in row


def test_the_date_of_a_last_run_that_is_long_ago_is_shown_once(page: Client, job: str) -> None:
    for days, times in ((40, 1), (20, 2)):
        run = make_ended_run(job, at=postgres_now() - dt.timedelta(days=days))
        last_run = row_of(read(page, "/maintenance/"), job).split(f"/maintenance/runs/{run.pk}/")[1].split("</td>")[0]
        assert last_run.count("<time") == times


def row_of(html: str, job: str) -> str:
    """Return the row of a job in the table of jobs."""
    start = html.index(f'id="job-{job}"')
    return html[start : html.index("</tr>", start)]


def test_the_next_run_of_a_queued_job_is_the_one_that_waits(page: Client, otto: User, job: str) -> None:
    run = request_run(job, actor=otto)
    row = row_of(read(page, "/maintenance/"), job)
    assert f'<a href="/maintenance/runs/{run.pk}/">waiting for a worker</a>' in row
    home = read(page, "/")
    assert f'<a class="small" href="/maintenance/runs/{run.pk}/">waiting for a worker</a>' in home
    assert ", 02:30</time>" not in row
    assert claim_run(run.pk) is not None
    row = row_of(read(page, "/maintenance/"), job)
    assert "waiting for a worker" not in row
    assert ", 02:30</time>" in row


def test_a_job_that_needs_cassandra_does_not_run_while_it_is_down(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    needing = make_job()
    other = replace(make_job(), needs_cassandra=False)
    register_only(monkeypatch, needing, other)

    def forms_and_reasons() -> list[tuple[bool, bool]]:
        """Return whether each job can be run, and whether a reason is given, in the table and on its page."""
        table = read(page, "/maintenance/")
        parts = [
            part
            for job in (needing.name, other.name)
            for part in (row_of(table, job), read(page, f"/maintenance/jobs/{job}/"))
        ]
        reason = "This job needs Cassandra. No node of Cassandra is up."
        return [('/run/"' in part and " disabled aria" not in part, reason in part) for part in parts]

    assert forms_and_reasons() == [(True, False)] * 4

    down: list[tuple[str, bool | None, str]] = [("10.0.0.1", False, "dc1"), ("10.0.0.2", False, "dc1")]
    monkeypatch.setattr(cassandra, "connected_hosts", lambda: down)
    assert forms_and_reasons() == [(False, True)] * 2 + [(True, False)] * 2


def test_a_run_that_needs_cassandra_is_not_repeated_while_it_is_down(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    needing = make_job()
    other = replace(make_job(), needs_cassandra=False)
    register_only(monkeypatch, needing, other)
    runs = [make_ended_run(job.name, at=postgres_now(), state=RunState.FAILED) for job in (needing, other)]
    urls = [f"/maintenance/runs/{run.pk}/" for run in runs]

    def may_repeat() -> list[bool]:
        """Return whether each run can be repeated, in the list of failed ones and on its page."""
        failed = read(page, "/maintenance/")
        return [f'action="{url}again/"' in html for url in urls for html in (failed, read(page, url))]

    assert may_repeat() == [True] * 4
    monkeypatch.setattr(cassandra, "connected_hosts", lambda: [("10.0.0.1", False, "dc1")])
    assert may_repeat() == [False] * 2 + [True] * 2
    for path in ("/maintenance/", urls[0]):
        html = read(page, path)
        button = re.search(r'<button [^>]*disabled aria-describedby="([^"]+)"> (?:<span>)?Run again', html)
        assert button
        reason = f'id="{button[1]}"> This job needs Cassandra. No node of Cassandra is up. </p>'
        assert html.count(reason) == 1


def test_a_page_does_not_connect_to_cassandra_to_say_whether_it_is_up(
    page: Client, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Never:
        raise AssertionError("a page has connected to Cassandra")

    cassandra.close()
    # Attempts to connect to nodes that do not answer take seconds each.
    monkeypatch.setattr(cassandra, "_open_connection", refuse)
    assert f"/maintenance/jobs/{job}/run/" in row_of(read(page, "/maintenance/"), job)
    assert f"/maintenance/jobs/{job}/run/" in read(page, f"/maintenance/jobs/{job}/")


def test_the_last_run_of_a_job_says_why_it_failed(page: Client, job: str) -> None:
    make_ended_run(job, at=postgres_now(), state=RunState.FAILED, error="Node 127.0.0.2 is down.")
    assert "Node 127.0.0.2 is down." in row_of(read(page, "/maintenance/"), job)


def test_a_job_that_missed_its_run_shows_it_as_its_state(page: Client, job: str) -> None:
    make_ended_run(job, at=postgres_now() - dt.timedelta(days=30))
    for path in ("/maintenance/", "/"):
        assert "missed its last run" not in read(page, path)
    # Before the slot at half past two, none was recent enough to be missed.
    noon = (postgres_now() - dt.timedelta(hours=12)).replace(hour=12)
    check_runs(noon)
    assert Finding.objects.filter(kind=MISSED_RUN, subject=job, closed_at=None).exists()
    row = row_of(read(page, "/maintenance/"), job)
    assert "missed its last run" in row
    assert ">scheduled</span>" not in row
    assert "missed its last run" in read(page, "/")
    make_ended_run(job, at=postgres_now())
    check_runs(postgres_now())
    assert "missed its last run" not in read(page, "/maintenance/")


def test_a_job_shows_its_schedule_and_its_next_five_runs(page: Client, job: str) -> None:
    html = read(page, f"/maintenance/jobs/{job}/")
    assert "At 02:30 every day" in html
    assert "Europe/Berlin" in html
    slots = re.search(r'<ol class="slots".*?</ol>', html)
    assert slots
    assert len(re.findall(r", 02:30</time>", slots[0])) == 5


def test_the_last_thirty_runs_are_labelled_marks(page: Client, job: str) -> None:
    now = postgres_now()
    for days in range(40, 0, -1):
        make_ended_run(job, at=now - dt.timedelta(days=days))
    make_ended_run(job, at=now, state=RunState.FAILED, error="Node 127.0.0.2 is down.")
    html = read(page, f"/maintenance/jobs/{job}/")
    assert len(re.findall(r'class="mark done" href', html)) == 29
    assert "29 done" in html
    assert "1 failed" in html
    assert re.search(r'class="mark failed"[^>]*title="failed, [^"]*: Node 127.0.0.2 is down."', html)
    # Each has its state and time as its name; both ends of the row are dated.
    first, last = format_datetime(now - dt.timedelta(days=29)), format_datetime(now)
    names = re.findall(r'class="mark [^>]*><span class="sr">([^<]*)</span>', html)
    assert names[0].startswith(f"done, {first}, ")
    assert names[-1].startswith(f"failed, {last}, ")
    axis = html.split('class="run-marks-axis')[1].split("</p>")[0]
    assert re.findall(r"<time[^>]*>([^<]*)</time>", axis) == [first, last]


def test_a_failed_run_is_on_top_until_the_next_success(page: Client, job: str) -> None:
    now = postgres_now()
    ended_at = now - dt.timedelta(hours=2)
    failed = make_ended_run(job, at=ended_at, state=RunState.FAILED, error="Node 127.0.0.2 is down.")
    html = read(page, "/maintenance/")
    # With its date: a run may have ended on another day.
    assert f">{format_datetime(ended_at)} (2 hours ago)</time>" in html
    assert (
        html.index("Failed, with no successful run since")
        < html.index("Node 127.0.0.2 is down.")
        < html.index(f'id="job-{job}"')
    )
    assert f"/maintenance/runs/{failed.pk}/again/" in html
    make_ended_run(job, at=now)
    assert f"/maintenance/runs/{failed.pk}/again/" not in read(page, "/maintenance/")


def test_a_failed_run_shows_which_attempt_of_how_many_it_was(
    page: Client, otto: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = configure_only_job(monkeypatch, max_attempts=3)
    began = postgres_now() - dt.timedelta(hours=2)
    run = make_ended_run(job, at=began, state=RunState.FAILED, slot="2026-11-28T02:30", error="Node down.")
    pages = ("/maintenance/", f"/maintenance/runs/?job={job}")
    numbers = []
    for attempt in (1, 2, 3):
        if attempt > 1:
            at = began + dt.timedelta(minutes=attempt)
            retry = make_ended_run(job, at=at, state=RunState.FAILED, error="Node down.")
            JobRun.objects.filter(pk=retry.pk).update(retry_of=run)
            run = retry
        with CaptureQueriesContext(connection) as queries:
            table, history = (read(page, path) for path in pages)
        numbers.append(len(queries))
        assert f"attempt {attempt} of 3" in row_of(table, job)
        assert f"attempt {attempt} of 3" in table[: table.index('id="job-')]
        assert history.count("of 3") == attempt
    assert numbers == [numbers[0]] * 3
    # "Run now" brings the next attempt forward.
    JobRun.objects.filter(pk=run.pk).update(requested_by=otto)
    assert "attempt 3 of 3" in row_of(read(page, "/maintenance/"), job)


def test_a_run_that_succeeds_at_once_shows_no_attempt(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = configure_only_job(monkeypatch, max_attempts=3)
    make_ended_run(job, at=postgres_now(), slot="2026-11-28T02:30")
    assert "attempt" not in row_of(read(page, "/maintenance/"), job)
    assert "attempt" not in read(page, f"/maintenance/runs/?job={job}")


def test_a_running_job_shows_since_when(page: Client, otto: User, job: str) -> None:
    run = request_run(job, actor=otto)
    assert "since" not in row_of(read(page, "/maintenance/"), job)
    assert claim_run(run.pk) is not None
    run.refresh_from_db()
    assert run.started_at is not None
    row = row_of(read(page, "/maintenance/"), job)
    state = row[row.index("running</span>") : row.index("</td>", row.index("running</span>"))]
    assert re.search(rf"since <time[^>]*>{format_datetime(run.started_at)}</time>", state)


def test_run_now_is_audited_and_does_not_move_the_next_run(page: Client, otto: User, job: str) -> None:
    before = re.search(r'<ol class="slots".*?</ol>', read(page, f"/maintenance/jobs/{job}/"))
    answer = page.post(f"/maintenance/jobs/{job}/run/")
    run = JobRun.objects.get(job=job)
    assert (answer.status_code, answer["Location"]) == (302, f"/maintenance/runs/{run.pk}/")
    assert (run.requested_by, run.slot) == (otto, None)
    assert "Waiting for a worker" in read(page, f"/maintenance/runs/{run.pk}/")
    after = re.search(r'<ol class="slots".*?</ol>', read(page, f"/maintenance/jobs/{job}/"))
    assert before
    assert after
    assert re.findall(r'datetime="([^"]*)"', before[0]) == re.findall(r'datetime="([^"]*)"', after[0])
    # It cannot be requested twice.
    assert page.post(f"/maintenance/jobs/{job}/run/").status_code == 400


def test_a_run_shows_its_progress_and_then_its_result(page: Client, otto: User, job: str) -> None:
    run = request_run(job, actor=otto)
    claim = claim_run(run.pk)
    assert claim is not None
    claim.report_progress(done=1_200, total=4_800, what="buckets")
    html = read(page, f"/maintenance/runs/{run.pk}/")
    assert '<progress max="4800" value="1200"' in html
    assert "Buckets: 1,200 of 4,800" in html
    # Without JavaScript the whole page reloads; with it, only a part of it.
    assert '<noscript><meta http-equiv="refresh"' in html
    live = page.get(f"/maintenance/runs/{run.pk}/live/")
    assert "HX-Trigger" not in live
    claim.end({"buckets": 4_800, "live_rows": 71})
    assert page.get(f"/maintenance/runs/{run.pk}/live/")["HX-Trigger"] == "reloadPage"
    html = read(page, f"/maintenance/runs/{run.pk}/")
    assert "<dt>Live rows</dt> <dd>71</dd>" in html
    assert "<noscript>" not in html
    assert "4,800 buckets, 71 live rows" in read(page, "/maintenance/runs/", {"job": job})


def test_running_jobs_are_on_top_and_the_page_reloads_when_they_end(page: Client, otto: User, job: str) -> None:
    run = request_run(job, actor=otto)
    claim = claim_run(run.pk)
    assert claim is not None
    assert f"/maintenance/runs/{run.pk}/" in page.get("/maintenance/live/").content.decode()
    claim.end({})
    assert f"/maintenance/runs/{run.pk}/" not in page.get("/maintenance/live/").content.decode()


def test_stop_ends_a_queued_run_at_once_and_names_the_user(page: Client, otto: User, job: str) -> None:
    run = request_run(job, actor=otto)
    answer = page.post(f"/maintenance/runs/{run.pk}/stop/")
    assert answer["Location"] == f"/maintenance/runs/{run.pk}/"
    html = read(page, f"/maintenance/runs/{run.pk}/")
    assert "stopped</span>" in html
    assert f'Stopped by <bdi class="staff-name">{otto.username}</bdi>' in html


def test_a_running_job_shows_that_a_stop_was_requested(page: Client, otto: User, job: str) -> None:
    run = request_run(job, actor=otto)
    assert claim_run(run.pk) is not None
    page.post(f"/maintenance/runs/{run.pk}/stop/")
    assert f'<bdi class="staff-name">{otto.username}</bdi> requested a stop' in read(
        page, f"/maintenance/runs/{run.pk}/"
    )


def test_run_again_creates_a_run_that_links_to_the_first(page: Client, otto: User, job: str) -> None:
    failed = make_ended_run(job, at=postgres_now(), state=RunState.FAILED, error="Node 127.0.0.2 is down.")
    page.post(f"/maintenance/runs/{failed.pk}/again/")
    again = JobRun.objects.get(retry_of=failed)
    assert again.requested_by == otto
    html = read(page, f"/maintenance/runs/{again.pk}/")
    assert f'Repeats <a href="/maintenance/runs/{failed.pk}/">run {failed.pk}</a>.' in html


def test_a_saved_schedule_records_who_changed_it_and_applies_from_then_on(page: Client, otto: User, job: str) -> None:
    fields = {
        "cron": "15 4 * * 1-5",
        "zone": "America/New_York",
        "opens": "04:00",
        "closes": "06:30",
        "is_enabled": "1",
    }
    answer = page.post(f"/maintenance/jobs/{job}/", fields, follow=True)
    assert "Schedule saved." in answer.content.decode()
    row = JobSchedule.objects.get(pk=job)
    assert (row.cron, row.zone, str(row.opens), str(row.closes)) == (
        "15 4 * * 1-5",
        "America/New_York",
        "04:00:00",
        "06:30:00",
    )
    assert (row.is_enabled, row.changed_by) == (True, otto)
    assert create_due_runs(postgres_now()) == []
    html = read(page, "/maintenance/")
    assert "At 04:15 on Monday through Friday" in html
    assert "between 04:00 and 06:30" in html


def test_a_typed_schedule_is_previewed_with_its_next_five_times(page: Client, job: str) -> None:
    typed = {"cron": "0 5 1 * *", "zone": "UTC", "is_enabled": "1"}
    for path in (f"/maintenance/jobs/{job}/", f"/maintenance/jobs/{job}/preview/"):
        html = read(page, path, typed)
        assert "At 05:00 on the first day of every month" in html
        assert len(re.findall(r" 1 \w+( \d{4})?, 05:00</time>", html)) == 5, path
    assert not JobSchedule.objects.filter(pk=job).exists()


@pytest.mark.parametrize(
    ("wrong", "reason", "marked"),
    [
        ({"cron": "99 5 * * *"}, "is not a valid schedule", ["cron"]),
        ({"cron": "30 2 * *"}, "Enter five fields", ["cron"]),
        ({"cron": ""}, "This field is required.", ["cron"]),
        ({"cron": "0 0 31 2 *"}, "is not a valid schedule: days are 1–31", ["cron"]),
        ({"zone": "Berlin"}, "Unknown time zone “Berlin”", ["zone"]),
        ({"opens": "02:00"}, "Enter both ends of the allowed hours", ["closes"]),
        ({"opens": "02:00", "closes": "02:00"}, "begin and end at the same time", ["opens", "closes"]),
        ({"opens": "25:00", "closes": "03:00"}, "Enter a valid time.", ["opens"]),
        ({"cron": "<script>alert(1)</script> * * * *"}, "&lt;script&gt;", ["cron"]),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_reason_at_its_field_and_kept_in_the_form(
    page: Client, job: str, wrong: dict[str, str], reason: str, marked: list[str]
) -> None:
    fields = {"cron": "30 2 * * *", "zone": "Europe/Berlin", "is_enabled": "1"} | wrong
    answer = page.post(f"/maintenance/jobs/{job}/", fields)
    html = answer.content.decode()
    assert answer.status_code == 400
    (error,) = re.findall(r'<span id="schedule-error"[^>]*>(.*?)</span>', html)
    assert reason in error
    # It follows its field, with nothing but the field's own hint between.
    (before,) = re.findall(r'name="(\w+)"(?:(?!name=").)*id="schedule-error"', html, re.DOTALL)
    assert before == marked[0]
    inputs = re.findall(r'<input [^>]*?name="(\w+)"([^>]*)>', html)
    assert [name for name, rest in inputs if 'aria-invalid="true"' in rest] == marked
    assert [name for name, rest in inputs if re.search('aria-describedby="schedule-error ', rest)] == marked
    preview = page.get(f"/maintenance/jobs/{job}/preview/", fields).content.decode()
    assert reason in preview.split(f'id="{marked[0]}-error" hx-swap-oob="true"')[1].split("hx-swap-oob")[0]
    assert "<script>alert" not in html
    assert not JobSchedule.objects.filter(pk=job).exists()


def test_a_disabled_job_shows_it_and_can_still_be_run_now(page: Client, job: str) -> None:
    page.post(f"/maintenance/jobs/{job}/", {"cron": "30 2 * * *", "zone": "UTC"})
    assert "disabled" in read(page, "/maintenance/")
    assert page.post(f"/maintenance/jobs/{job}/run/").status_code == 302
    # It waits for a worker, although it has no next run.
    assert f'href="/maintenance/jobs/{job}/"' in read(page, "/")


def test_a_bucket_job_has_no_schedule_and_needs_a_subject(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = configure_only_job(monkeypatch, schedule=None)
    read(page, f"/maintenance/jobs/{job}/", status=404)
    assert page.post(f"/maintenance/jobs/{job}/run/").status_code == 400
    assert not JobRun.objects.filter(job=job).exists()


def test_a_bucket_run_is_labelled_with_channel_and_dates(
    page: Client, otto: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = configure_only_job(monkeypatch, schedule=None)
    harbour = Guild.objects.create(pk=fresh_id(), name="Harbour")
    channel = Channel.objects.create(pk=fresh_id(), name="general \u202e<b>", guild=harbour)
    run = request_run(job, actor=otto, subject=f"{channel.pk}:-3")
    html = read(page, f"/maintenance/runs/{run.pk}/")
    assert '(Harbour)</bdi>, <span class="nowrap">2–11 December 2014</span>' in html
    assert "&lt;b&gt;" in html
    assert "\u202e" not in html
    assert "general" in read(page, "/maintenance/runs/", {"job": job})


def test_the_history_is_filtered_by_job_state_and_dates_and_paged_by_key(page: Client, job: str) -> None:
    day = dt.datetime(2026, 5, 1, 2, 30, tzinfo=dt.UTC)
    made = [make_ended_run(job, at=day + dt.timedelta(days=number)) for number in range(35)]
    skipped = make_ended_run(job, at=day, state=RunState.SKIPPED, error="Run 1 of the same job is still running.")
    first = read(page, "/maintenance/runs/", {"job": job})
    assert shown(first) == [run.pk for run in [skipped, *made[:5:-1]]]
    older = re.search(r'href="\?(before=[^"]*)"', first)
    assert older
    second = read(page, f"/maintenance/runs/?{older[1].replace('&amp;', '&')}")
    assert shown(second) == [run.pk for run in made[5::-1]]
    assert shown(read(page, "/maintenance/runs/", {"job": job, "state": "skipped"})) == [skipped.pk]
    days = {"job": job, "state": "done", "since": "2026-05-02", "until": "2026-05-03"}
    assert shown(read(page, "/maintenance/runs/", days)) == [made[2].pk, made[1].pk]
    assert "No runs match these filters" in read(page, "/maintenance/runs/", {"job": job, "since": "2027-01-01"})


def shown(html: str) -> list[int]:
    return [int(found) for found in re.findall(r'class="title" href="/maintenance/runs/(-?\d+)/"', html)]


@pytest.mark.parametrize(
    ("filters", "status"),
    [
        ({"state": "lost"}, 400),
        ({"since": "soon"}, 400),
        ({"until": "9999-12-31"}, 400),
        ({"before": "x"}, 400),
        ({"job": "nothing-is-called-that"}, 404),
        ({"job": "\x00"}, 404),
    ],
)
def test_invalid_filters_are_refused(page: Client, filters: dict[str, str], status: int) -> None:
    assert page.get("/maintenance/runs/", filters).status_code == status


def test_dates_of_runs_are_typed_as_pages_print_them_and_others_stay_in_their_field(page: Client, job: str) -> None:
    run = make_ended_run(job, at=dt.datetime(2026, 5, 2, 12, tzinfo=dt.UTC))
    found = read(page, "/maintenance/runs/", {"job": job, "since": "2 May 2026", "until": "2 May 2026"})
    assert shown(found) == [run.pk]
    assert not shown(read(page, "/maintenance/runs/", {"job": job, "since": "2 May 2026, 13:00"}))
    refused = read(page, "/maintenance/runs/", {"job": job, "since": "31 <June> 2026"}, status=400)
    assert "“31 &lt;June&gt; 2026” is not a valid date." in refused
    assert 'value="31 &lt;June&gt; 2026"' in refused
    assert not shown(refused)


def test_job_output_is_escaped(page: Client, job: str) -> None:
    make_ended_run(job, at=postgres_now(), state=RunState.FAILED, error="<img src=x onerror=alert(1)>")
    assert "<img src=x" not in read(page, "/maintenance/")
    assert "<img src=x" not in read(page, "/maintenance/runs/", {"job": job})


def test_an_action_executed_by_a_worker_is_recorded_to_its_end(page: Client, job: str) -> None:
    page.post(f"/maintenance/jobs/{job}/run/")
    run = JobRun.objects.get(job=job)
    assert work_on_run(run.pk) is not None
    assert "3 buckets" in read(page, "/maintenance/runs/", {"job": job})


@pytest.mark.parametrize("action", ["stop", "again"])
def test_an_unknown_run_is_not_found(page: Client, action: str) -> None:
    response = page.post(f"/maintenance/runs/9223372036854775807/{action}/")
    assert response.status_code == 404
    assert "Run 9223372036854775807 does not exist" in response.content.decode()


def test_a_compaction_that_needs_a_repair_offers_it_and_runs_again_only_once_it_is_covered(
    page: Client, otto: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    bucket = bucket_of(ids[0])
    note_deletes(channel.pk, bucket, 1)
    deleted_at = postgres_now() - dt.timedelta(days=30)
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=deleted_at, hour=deleted_at)
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, None))
    failed = work_on_run(request_run("compact", actor=otto, subject=f"{channel.pk}:{bucket}").pk)
    assert failed is not None
    assert failed.state == RunState.FAILED
    again, repair = (
        f'action="/maintenance/runs/{failed.pk}/again/"',
        f'action="/channels/{channel.pk}/health/{bucket}/repair/"',
    )
    for path in (f"/maintenance/runs/{failed.pk}/", "/maintenance/"):
        html = read(page, path)
        assert repair in html
        assert again not in html
    assert re.search(r'class="run-error small"[^<]*Repair it first', html)
    with monkeypatch.context() as outage:
        outage.setattr(cassandra, "connected_hosts", lambda: [("10.0.0.1", False, "dc1")])
        for path in (f"/maintenance/runs/{failed.pk}/", "/maintenance/"):
            html = read(page, path)
            assert repair not in html
            button = re.search(rf'<button [^>]*disabled aria-describedby="(no-repair-{failed.pk})"> <span>Repair', html)
            assert button, path
            assert f'id="{button[1]}"> This job needs Cassandra. No node of Cassandra is up. </p>' in html

    monkeypatch.setattr(
        compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, deleted_at + dt.timedelta(days=1))
    )
    for path in (f"/maintenance/runs/{failed.pk}/", "/maintenance/"):
        html = read(page, path)
        assert "A repair now covers the last delete here" in html
        assert repair not in html
        assert again in html
        # An error of the past is described as one, and no longer red.
        assert re.search(r'class="quiet small"> When it ran: [^<]*Repair it first', html)
    html = read(page, f"/maintenance/runs/{failed.pk}/")
    assert 'class="notice error"' not in html
    # Its state is still that it failed, and looks as everywhere.
    assert '<span class="chip failed">failed</span>' in html


def test_a_repair_in_the_minute_of_the_last_delete_is_described_by_one_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel, bucket = make_channel(), 300
    note_deletes(channel.pk, bucket, 1)
    at = dt.datetime(2026, 11, 21, 4, 35, 40, tzinfo=dt.UTC)
    BucketDeletes.objects.filter(channel_id=channel.pk).update(last_at=at)
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, at - dt.timedelta(seconds=20)))
    obstacle = compaction.find_obstacle(channel.pk, bucket)
    assert obstacle is not None
    assert obstacle.reason.count("04:35") == 1
    monkeypatch.setattr(compaction, "last_repairs_of", lambda keys: dict.fromkeys(keys, at - dt.timedelta(minutes=20)))
    obstacle = compaction.find_obstacle(channel.pk, bucket)
    assert obstacle is not None
    assert "last repair (21 November, 04:15 UTC)" in obstacle.reason
