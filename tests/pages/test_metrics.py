"""Metrics require the token or an operator; every kind of metric is exported."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.runs import Severity
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store import cassandra
from chatstore.store.heartbeats import BEAT, record_heartbeat
from tests.chatstore.operations.jobs import configure_only_job, make_ended_run
from tests.findings import close_finding

SignIn = Callable[[User], Client]
Sample = tuple[str, dict[str, str], float]


def scrape(client: Client, **headers: str) -> list[Sample]:
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200
    families = text_string_to_metric_families(response.content.decode())
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def value_of(samples: list[Sample], name: str, **labels: str) -> float:
    (found,) = [value for sample, at, value in samples if sample == name and at == labels]
    return found


@pytest.fixture
def metrics(otto: User, sign_in: SignIn) -> Callable[[], list[Sample]]:
    client = sign_in(otto)
    return lambda: scrape(client)


def test_findings_are_counted_by_severity(metrics: Callable[[], list[Sample]]) -> None:
    before = value_of(metrics(), "chatstore_findings", severity="critical")
    open_finding("a test of metrics", "", Problem(Severity.CRITICAL, "a node is down"))
    assert value_of(metrics(), "chatstore_findings", severity="critical") == before + 1
    close_finding("a test of metrics", "")
    assert value_of(metrics(), "chatstore_findings", severity="critical") == before


def test_runs_and_the_last_success_of_each_job_are_exported(
    metrics: Callable[[], list[Sample]], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = configure_only_job(monkeypatch)
    make_ended_run(job, at=postgres_now())
    samples = metrics()
    assert value_of(samples, "chatstore_runs", job=job, state="done") == 1
    assert 0 <= value_of(samples, "chatstore_job_last_success_age_seconds", job=job) < 60


def test_nodes_beat_queues_purges_repairs_and_the_read_path_are_exported(metrics: Callable[[], list[Sample]]) -> None:
    record_heartbeat(BEAT)
    samples = metrics()
    names = {name for name, *_ in samples}
    assert [value for name, _, value in samples if name == "chatstore_node_up"] == [1.0, 1.0]
    assert value_of(samples, "chatstore_beat_age_seconds") < 60
    assert {at["queue"] for name, at, _ in samples if name == "chatstore_queue_depth"} == {
        "celery",
        "previews",
        "maintenance",
    }
    assert value_of(samples, "chatstore_purges", state="running") >= 0
    assert value_of(samples, "chatstore_read_path_total", event="buckets_skipped") >= 0
    assert value_of(samples, "chatstore_repair_clock_share", table="messages") >= 0
    assert all(name.startswith("chatstore_") for name in names)


def test_unavailable_metrics_are_omitted_and_the_rest_is_exported(
    metrics: Callable[[], list[Sample]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[tuple[str, bool, str]]:
        raise StoreUnavailable("Cassandra does not answer.")

    monkeypatch.setattr(cassandra, "hosts", fail)
    names = {name for name, *_ in metrics()}
    assert "chatstore_node_up" not in names
    assert "chatstore_purges" in names


def test_a_scraper_needs_the_token(settings: Settings) -> None:
    settings.METRICS_TOKEN = "t0ken"
    assert scrape(Client(), Authorization="Bearer t0ken")


@pytest.mark.parametrize("shown", ["", "t0ken", "Bearer", "Bearer ", "Bearer wrong", "bearer t0ken", "Bearer t0ken2"])
def test_any_other_request_is_refused_without_details(shown: str, settings: Settings) -> None:
    settings.METRICS_TOKEN = "t0ken"
    answer = Client().get("/metrics", headers={"Authorization": shown})
    assert (answer.status_code, answer.content) == (403, b"Permission denied.\n")


def test_without_a_configured_token_every_token_is_refused(settings: Settings) -> None:
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
