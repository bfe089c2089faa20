"""`manage.py repair` runs in the foreground, is recorded as a run, and reports success by its exit code."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.runs import RunState
from chatstore.models import JobRun
from moderation.management.commands import repair
from moderation.models import AuditEntry
from tests.chatstore.channels import fresh_id, now_ms, write_messages

BUCKET = bucket_at(now_ms()) - 7


@pytest.mark.slow
def test_one_bucket_is_repaired_and_reported_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    channel_id = fresh_id()
    write_messages(channel_id, [bucket_ids(BUCKET)[0] + 1])
    call_command("repair", channel=channel_id, bucket=BUCKET, json=True)
    output = json.loads(capsys.readouterr().out)
    assert (output["state"], output["error"], output["result"]["replicas"]) == ("done", "", 2)
    assert output["subject"] == f"{channel_id}:{BUCKET}"
    run = JobRun.objects.get(pk=output["run"])
    assert (run.state, run.requested_by, run.slot) == (RunState.DONE, None, None)
    entry = AuditEntry.objects.get(action="run_requested", details__run=str(run.pk))
    assert (str(entry.actor), entry.channel_id, entry.details["job"]) == ("command-line", channel_id, "repair_bucket")


def test_a_failed_repair_exits_with_1_and_the_reason(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    settings.NODETOOL = "sh -c 'echo \"error: Endpoint not alive\" >&2; exit 2'"
    with pytest.raises(SystemExit) as ended:
        call_command("repair", channel=fresh_id(), bucket=BUCKET)
    assert ended.value.code == 1
    assert "Endpoint not alive" in capsys.readouterr().out


def test_what_it_does_is_printed_in_words(
    capsys: pytest.CaptureFixture[str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "POLL_SECONDS", 0.02)
    settings.NODETOOL = "sh -c 'sleep 2; exit 2'"
    with pytest.raises(SystemExit):
        call_command("repair", channel=fresh_id(), bucket=BUCKET)
    lines = [line for line in capsys.readouterr().err.splitlines() if " of " in line]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"\d of \d: [\w .,:%]+", line)] == []


def test_a_channel_without_a_bucket_is_refused() -> None:
    with pytest.raises(CommandError, match="must be used together"):
        call_command("repair", channel=fresh_id())


def test_a_second_repair_of_the_same_bucket_is_refused() -> None:
    channel_id = fresh_id()
    open_run = JobRun.objects.create(job="repair_bucket", subject=f"{channel_id}:{BUCKET}", due_at="2999-01-01T00:00Z")
    with pytest.raises(CommandError, match="already queued or running"):
        call_command("repair", channel=channel_id, bucket=BUCKET)
    open_run.delete()
