"""A figure is the same on every page, chart, finding, export and in the admin, also after another measurement."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import secrets
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from django.test import Client

from chatstore.domain.runs import Severity
from chatstore.models import Channel, Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.channels import HEAVY_BUCKET, MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, acknowledge_finding, open_finding
from chatstore.operations.health import cluster_health, summaries
from chatstore.operations.health.cluster_health import read_worst
from chatstore.operations.health.heavy_buckets import check_heavy_buckets
from chatstore.operations.health.history import note_day
from chatstore.operations.health.summaries import refresh_due_summaries
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.operations.ledger.summaries import mark_due
from chatstore.store import figures, ledger
from moderation.views import board
from tests.moderation.channels import make_channel

SignIn = Callable[[User], Client]

BUCKET, OTHER = 333, 334
SIZE = 61_000_000


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    """Yield a channel with two buckets that the monitor checks; lists are long enough for it."""
    monkeypatch.setattr(cluster_health, "MAX_WORST_PARTITIONS", 1_000)
    monkeypatch.setattr(board, "PARTITIONS_SHOWN", 1_000)
    # The channels of other tests may be due before it.
    monkeypatch.setattr(summaries, "REFRESH_SECONDS", 10**9)
    made = make_channel(name=f"quay {secrets.token_hex(6)}")
    for bucket in (BUCKET, OTHER):
        ledger.ensure_row(made.pk, bucket)
        note_deletes(made.pk, bucket, 5_000)
    yield made
    Finding.objects.filter(kind=HEAVY_BUCKET, subject__startswith=f"{made.pk}:").delete()


def measure(channel: Channel, bucket: int, *, source: str = "own read", **found: int) -> None:
    figures.note_figures(channel.pk, bucket, found, source=source, measured_at=postgres_now())
    mark_due([channel.pk])


def run_monitor() -> None:
    now = postgres_now()
    refresh_due_summaries(now)
    check_heavy_buckets(now)


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def texts_about(client: Client, channel: Channel) -> dict[str, str]:
    """Return what each page says about the channel, by place."""

    def read(path: str) -> str:
        response = client.get(path)
        assert response.status_code == 200, path
        return (response.getvalue() if response.streaming else response.content).decode()

    def line_on(path: str, bucket: int) -> str:
        html = read(path)
        found = re.search(rf'<a class="title" href="/channels/{channel.pk}/health/{bucket}/">.*?</li>', html, re.DOTALL)
        return plain(found[0]) if found else ""

    health = read(f"/channels/{channel.pk}/health/")
    (chart,) = re.findall(r'<section class="card" id="history".*?</section>', health, re.DOTALL)
    finding = Finding.objects.open().filter(kind=HEAVY_BUCKET, subject=f"{channel.pk}:{BUCKET}").first()
    return {
        "page": plain(health),
        "chart": chart.split("<details", 1)[0].split("Size of", 1)[0],
        "table": plain(read(f"/health/channels/?q={channel.name}")),
        "home": line_on("/", BUCKET),
        "cluster": line_on("/health/", BUCKET),
        "admin list": plain(read(f"/admin/chatstore/channel/?q={channel.pk}")),
        "admin": plain(read(f"/admin/chatstore/channel/{channel.pk}/change/")),
        "finding": "" if finding is None else finding.summary,
    }


def test_tombstones_of_the_worst_bucket_agree_everywhere_after_each_measurement(
    channel: Channel, otto: User, sign_in: SignIn
) -> None:
    client = sign_in(otto)
    measure(channel, BUCKET, tombstones=71_178)
    note_day(channel.pk, now=postgres_now(), read_ms=2.5)
    run_monitor()
    for place, text in texts_about(client, channel).items():
        assert "71,178" in text, place
    measure(channel, OTHER, tombstones=3)
    run_monitor()
    for place, text in texts_about(client, channel).items():
        assert "71,178" in text, place
    # Later than the nightly probe, by another source.
    measure(channel, BUCKET, tombstones_seen_by_repair=82_345, source="top partitions")
    run_monitor()
    for place, text in texts_about(client, channel).items():
        assert "82,345" in text, place
        assert "71,178" not in text, place


def test_a_bucket_without_tombstones_any_more_is_nowhere_among_the_worst(
    channel: Channel, otto: User, sign_in: SignIn
) -> None:
    client = sign_in(otto)
    measure(channel, BUCKET, tombstones=71_178)
    run_monitor()
    measure(channel, BUCKET, tombstones=0)
    run_monitor()
    texts = texts_about(client, channel)
    assert [place for place, text in texts.items() if "71,178" in text] == []
    assert texts["home"] == texts["cluster"] == texts["finding"] == ""


def test_an_open_finding_is_the_state_of_the_channel_everywhere(channel: Channel, otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    measure(channel, BUCKET, newest_page_us=2_410, newest_page_tombstones=0)
    run_monitor()
    lost = Problem(Severity.CRITICAL, "2 messages that should have been kept are missing after a purge.")
    finding = open_finding(MISSING_SURVIVORS, f"{channel.pk}:{BUCKET}:7.0", lost)

    def read_states() -> dict[str, str]:
        texts = texts_about(client, channel)
        query = f"?q={channel.name}"
        (row,) = csv.DictReader(io.StringIO(client.get(f"/health/channels.csv{query}").getvalue().decode()))
        (entry,) = json.loads(client.get(f"/health/channels.json{query}").getvalue())
        output = io.StringIO()
        with contextlib.suppress(SystemExit):
            call_command("health", "--channel", str(channel.pk), "--json", stdout=output)
        # The filters above the table name all states.
        texts["table"] = texts["table"].split("Last purge", 1)[1]
        chosen = {name: texts[name] for name in ("page", "table", "admin list", "admin")}
        found = {"csv": row["state"], "json": entry["state"], "command": json.loads(output.getvalue())["state"]}
        return chosen | found

    for place, text in read_states().items():
        assert text == "missing_messages" or "messages missing" in text.lower(), place
        assert "healthy" not in text.lower(), place
    page, table = (read_states()[place] for place in ("page", "table"))
    for text in (page, table):
        assert "should have been kept are missing after a purge." in text
    assert "messages missing, critical" in table
    (listed,) = csv.DictReader(
        io.StringIO(client.get(f"/health/channels.csv?q={channel.name}&state=missing_messages").getvalue().decode())
    )
    assert (listed["channel_id"], listed["severity"]) == (str(channel.pk), "critical")
    acknowledge_finding(finding.pk, actor=otto)
    for place, text in read_states().items():
        assert text == "healthy" or "healthy so far" in text.lower(), place
        assert "messages missing" not in text.lower(), place


def test_home_and_the_page_of_the_cluster_list_the_same_partitions_by_tombstones(channel: Channel) -> None:
    measure(channel, BUCKET, tombstones=71_178)
    # The largest one of the channel, but not its worst by tombstones.
    measure(channel, OTHER, tombstones=60_000, bytes=SIZE)
    run_monitor()
    now = postgres_now()
    at_home, on_page = (
        [one.bucket for one in read_worst(now, only_tombstones=brief).by_tombstones if one.channel_id == channel.pk]
        for brief in (True, False)
    )
    assert at_home == on_page == [BUCKET]


def test_exports_and_the_command_have_the_figures_of_the_table(channel: Channel, otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    measure(channel, BUCKET, tombstones=71_178, bytes=SIZE, newest_page_us=2_410, newest_page_tombstones=0)
    run_monitor()
    query = f"?q={channel.name}"
    rows = [
        *csv.DictReader(io.StringIO(client.get(f"/health/channels.csv{query}").getvalue().decode())),
        *json.loads(client.get(f"/health/channels.json{query}").getvalue()),
    ]
    own = [row for row in rows if row["channel_id"] == str(channel.pk)]
    assert len(own) == 2
    for row in own:
        assert (row["state"], str(row["tombstones"]), str(row["bytes"])) == ("tombstones", "71178", str(SIZE))
        assert (str(row["newest_page_us"]), str(row["uncovered_deletes"])) == ("2410", "10000")
    output = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("health", "--channel", str(channel.pk), "--json", stdout=output)
    report = json.loads(output.getvalue())
    assert report["state"] == "tombstones"
    assert [bucket["tombstones"] for bucket in report["buckets"] if bucket["bucket"] == BUCKET] == [71_178]
    assert report["newest_page"]["newest_page_us"]["value"] == 2_410


def test_the_admin_shows_the_figures_of_the_table(channel: Channel, otto: User, sign_in: SignIn) -> None:
    client = sign_in(otto)
    measure(channel, BUCKET, tombstones=71_178, bytes=SIZE, newest_page_us=9_187, newest_page_tombstones=0)
    run_monitor()
    texts = texts_about(client, channel)
    for place in ("table", "admin"):
        for figure in ("71,178", "61.0 MB", "9.2 ms", "10,000"):
            assert figure in texts[place], (place, figure)
        assert "10,000 deletes" in texts[place].replace("\u00a0", " "), place
    assert "0 of 2" in texts["admin"]
