"""The cluster page for operators: findings first, repair clocks, nodes, the worst partitions by channel and dates."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from django.template.loader import render_to_string
from django.test import Client

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.repair_clocks import RepairClock
from chatstore.domain.runs import ENDED, RunState, Severity
from chatstore.domain.texts import as_json
from chatstore.models import BucketDeletes, JobRun
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.operations.health import cluster_health
from chatstore.operations.health.cluster_health import Partition
from chatstore.operations.jobs.runs import request_run, stop_run, work_on_run
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.summaries import count_uncovered
from chatstore.operations.repair_status.rounds import NODES_REPAIRED, ROUND_BEGAN
from chatstore.store import figures
from tests.chatstore.channels import delete_rows, now_ms, write_messages
from tests.chatstore.repair_runs import delete_repair_runs
from tests.chatstore.top_partition_lists import make_room_in_lists
from tests.findings import close_finding
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]
BUCKET = bucket_at(now_ms()) - 6
MANY = 150


def read(user: User, sign_in: SignIn) -> str:
    response = sign_in(user).get("/health/")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


@pytest.fixture(scope="module")
def measured() -> int:
    """Return a channel with a measured bucket of many tombstones."""
    make_room_in_lists()
    channel = make_channel(name="harbour<i>")
    first, _ = bucket_ids(BUCKET)
    ids = [first + number for number in range(1, MANY + 11)]
    write_messages(channel.pk, ids)
    delete_rows(channel.pk, ids[:MANY])
    run = JobRun.objects.create(job="measure", subject=f"{channel.pk}:{BUCKET}", due_at="2026-01-01T00:00Z")
    done = work_on_run(run.pk)
    assert done is not None
    assert (done.state, done.error) == (RunState.DONE, "")
    return channel.pk


def test_nodes_repair_clocks_and_the_read_path_are_shown_with_their_age(otto: User, sign_in: SignIn) -> None:
    html = read(otto, sign_in)
    assert "2 of 2 nodes are up" in html
    assert html.count('<span class="chip done">up</span>') == 2
    assert "Last full repair, all nodes" in html
    # Each node's figure says what it is, not only whose.
    facts = re.findall(r"<dt> <span class=\"mono\">([\d.]+)</span>: last full repair </dt> <dd>(.*?)</dd>", html)
    assert sorted(node for node, _ in facts) == ["127.0.0.1", "127.0.0.2"]
    assert all("<time" in repaired or "none in 30 days" in repaired for _, repaired in facts)
    assert "repair history of all nodes, <time" in html
    assert "Reads aborted by tombstones" in html
    assert "Unavailable." not in html


def test_a_repair_clock_says_why_it_counts_from_before_the_repair() -> None:
    began = postgres_now() - dt.timedelta(days=1)
    for seconds, is_explained in ((-10, True), (10, False)):
        clock = RepairClock(
            "messages", postgres_now(), began, {}, began + dt.timedelta(seconds=seconds), 172_800, 172_800
        )
        shown = render_to_string("moderation/health/_messages_clock.html", {"clock": clock})
        assert ("just before the repair: clocks may differ" in shown) == is_explained


def test_the_date_of_a_repair_clock_is_shown_once() -> None:
    now = postgres_now()
    for days, times in ((40, 1), (20, 2)):
        shown = render_to_string("moderation/health/_clock_time.html", {"at": now - dt.timedelta(days=days)})
        assert shown.count("<time") == times
        # The seconds stay: a delete and a repair may be of one minute.
        assert re.search(r">\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC</time>", shown)


def test_a_repair_and_a_delete_of_one_minute_are_told_apart_by_their_seconds() -> None:
    began_at = dt.datetime(2026, 3, 11, 12, 3, 7, tzinfo=dt.UTC)
    clock = RepairClock(
        table="messages",
        now=began_at + dt.timedelta(hours=3),
        began_at=began_at,
        per_node={"10.0.0.1": began_at},
        counts_from=began_at + dt.timedelta(seconds=41),
        gc_grace_seconds=864_000,
        normal_gc_grace_seconds=864_000,
    )
    html = render_to_string("moderation/health/_messages_clock.html", {"clock": clock})
    assert html.count(">11 March 2026, 12:03:07 UTC</time>") == 2
    assert html.count(">11 March 2026, 12:03:48 UTC</time>") == 1


def test_the_end_of_the_round_of_repairs_is_shown_and_unknown_without_a_speed(otto: User, sign_in: SignIn) -> None:
    delete_repair_runs()
    assert "it is unknown when every node will have been repaired" in read(otto, sign_in)
    now = postgres_now()
    hour = dt.timedelta(hours=1)
    run = JobRun.objects.create(
        job="repair",
        state=RunState.DONE,
        due_at=now - hour,
        started_at=now - hour,
        ended_at=now,
        result={ROUND_BEGAN: as_json(now + hour)},
    )
    html = read(otto, sign_in)
    assert "0 of 2 nodes have been repaired. It is unknown when it will be complete." in html
    run.result[NODES_REPAIRED] = 1
    run.save()
    assert re.search(r"At the current speed it will be complete <time [^>]*>in [^<]*</time>\.", read(otto, sign_in))
    run.delete()


def test_the_worst_partitions_are_named_by_channel_and_dates_and_linked(
    otto: User, sign_in: SignIn, measured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests have left worse ones.
    monkeypatch.setattr(cluster_health, "MAX_WORST_PARTITIONS", 1_000)
    html = read(otto, sign_in)
    line = re.search(rf'<a class="title" href="/channels/{measured}/health/{BUCKET}/">.*?</li>', html)
    assert line
    assert "harbour&lt;i&gt;" in line[0]
    for node in ("127.0.0.1", "127.0.0.2"):
        assert f'<span class="mono">{node}</span>: {MANY} ' in line[0]
    assert "(live)" in html
    assert figures.read_figures(measured)[BUCKET]["tombstones_seen_by_repair"].value == MANY


def test_replicas_differ_only_where_all_of_them_list_the_bucket() -> None:
    def partition(**per_replica: int | None) -> Partition:
        return Partition(1, 2, None, None, 9, per_replica, None)

    assert partition(a=9, b=4).replica_difference == 5
    assert partition(a=9, b=9).replica_difference == 0
    # A restarted node has lost its list.
    assert partition(a=9, b=None).replica_difference is None


def test_deletes_that_no_repair_covers_are_listed_by_channel(otto: User, sign_in: SignIn) -> None:
    channel = make_channel()
    note_deletes(channel.pk, BUCKET, 10**12)
    note_deletes(channel.pk, BUCKET - 1, 5)
    count_uncovered(None)
    html = read(otto, sign_in)
    assert re.search(rf'href="/channels/{channel.pk}/health/">.*?<b>1,000,000,000,005 deletes</b>', html)
    assert "since the last full repair of all nodes" in html
    BucketDeletes.objects.filter(channel_id=channel.pk).delete()


def test_findings_are_shown_first(otto: User, sign_in: SignIn) -> None:
    open_finding("node down", "10.1.2.3", Problem(Severity.CRITICAL, "Node 10.1.2.3 (far) is down."))
    html = read(otto, sign_in)
    assert html.index("Node 10.1.2.3 (far) is down.") < html.index("Repair clocks")
    close_finding("node down", "10.1.2.3")


def test_repair_now_needs_confirmation_is_audited_and_not_started_twice(otto: User, sign_in: SignIn) -> None:
    JobRun.objects.filter(job="repair", subject="").exclude(state__in=ENDED).delete()
    page = sign_in(otto)
    assert "Repair all tables on every node" in read(otto, sign_in)
    answer = page.post("/health/repair/")
    assert (answer.status_code, answer["Location"]) == (302, "/health/")
    run = JobRun.objects.exclude(state__in=ENDED).get(job="repair", subject="")
    assert (run.requested_by, run.slot) == (otto, None)
    assert "requested by" in read(otto, sign_in)
    assert page.post("/health/repair/").status_code == 400
    stop_run(run.pk, actor=otto)


def test_a_page_without_a_running_job_is_not_polled(otto: User, sign_in: SignIn) -> None:
    JobRun.objects.filter(job__in=("repair", "raise_gc_grace", "restore_gc_grace")).exclude(state__in=ENDED).delete()
    run = request_run("restore_gc_grace", actor=otto)
    page = sign_in(otto)
    assert "hx-get" in page.get("/health/live/").content.decode()
    stop_run(run.pk, actor=otto)
    answer = page.get("/health/live/")
    assert "hx-get" not in answer.content.decode()
    assert answer["HX-Trigger"] == "reloadPage"
