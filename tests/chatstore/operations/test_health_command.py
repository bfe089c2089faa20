"""`manage.py health` prints what the pages show, as text and as JSON; it fails while a finding is critical."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chatstore.domain.runs import Severity
from chatstore.models import Channel, Finding
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store import figures, ledger
from tests.chatstore.channels import fresh_id, now_ms, spread_ids, write_messages
from tests.findings import close_finding

ESCAPE = "\x1b[31m"


def health(*arguments: str) -> tuple[str, int]:
    """Run the command; return its output and exit code."""
    out = io.StringIO()
    try:
        call_command("health", *arguments, stdout=out)
    except SystemExit as ended:
        return out.getvalue(), int(str(ended.code))
    return out.getvalue(), 0


def health_json(*arguments: str) -> Any:
    return json.loads(health(*arguments, "--json")[0])


@pytest.fixture
def channel() -> Channel:
    """Return a channel with a measured bucket, an unmeasured one, and a name with terminal escape sequences."""
    made = Channel.objects.create(pk=fresh_id(), name=f"room{ESCAPE}")
    write_messages(made.pk, spread_ids(2, newest_ms=now_ms(), step_ms=1))
    ledger.ensure_row(made.pk, -3)
    figures.note_figures(made.pk, -3, {"tombstones": 70_000}, source="probe", measured_at=postgres_now())
    return made


def test_a_channel_is_printed_bucket_by_bucket_with_unknown_values(channel: Channel) -> None:
    output, code = health("--channel", str(channel.pk))
    assert code == 0
    (measured,) = [line for line in output.splitlines() if line.strip().startswith("-3 ")]
    assert "tombstones" in measured
    assert "messages: unknown, tombstones: 70,000, size: unknown" in measured
    assert ESCAPE not in output


def test_the_same_as_json_has_sources_and_times(channel: Channel) -> None:
    report = health_json("--channel", str(channel.pk))
    (bucket,) = [entry for entry in report["buckets"] if entry["bucket"] == -3]
    assert (bucket["state"], bucket["severity"], bucket["messages"]) == ("tombstones", "critical", None)
    assert bucket["figures"]["tombstones"]["source"] == "probe"
    assert bucket["figures"]["tombstones"]["measured_at"].endswith("+00:00")
    assert report["channel"] == str(channel.pk)


def test_the_cluster_is_printed_as_clocks_nodes_and_findings() -> None:
    report = health_json()
    assert {clock["table"] for clock in report["repair_clocks"]} >= {"messages"}
    assert [node["up"] for node in report["nodes"]] == [True, True]
    output, _ = health()
    assert "repair     messages" in output
    assert "node       127.0.0.1" in output


def test_it_fails_while_a_critical_finding_is_open(channel: Channel) -> None:
    subject = f"{channel.pk}:-3"
    open_finding("heavy bucket", subject, Problem(Severity.WARNING, "It is heavy."))
    assert health("--channel", str(channel.pk))[1] == 0
    open_finding("heavy bucket", subject, Problem(Severity.CRITICAL, f"It is {ESCAPE}ruined."))
    output, code = health("--channel", str(channel.pk))
    assert code == 1
    assert "critical   It is ?[31mruined." in output
    assert health()[1] == 1
    assert health_json()["ok"] is False
    close_finding("heavy bucket", subject)
    assert health("--channel", str(channel.pk))[1] == 0
    others_are_critical = Finding.objects.filter(closed_at=None, severity=Severity.CRITICAL).exists()
    assert health()[1] == int(others_are_critical)


@pytest.mark.parametrize("channel_id", ["general", "1"])
def test_an_unknown_channel_is_reported_in_one_line(channel_id: str) -> None:
    with pytest.raises(CommandError):
        health("--channel", channel_id)
