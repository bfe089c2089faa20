"""`manage.py import_discord` from the command line: output, JSON, exit code, memory."""

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from chatstore.operations.importing.discord import ImportProblem, ImportProgress
from moderation.management.commands.import_discord import draw_progress, gathered_warnings
from tests.imports.exports import MAY, fresh_channel, ids_from, live_ids, make_export, make_raw, write_export

KEYS = {
    "files",
    "messages",
    "written",
    "already_there",
    "updated",
    "deleted_before",
    "rejected",
    "failed_files",
}
RESIDENT_LIMIT_KIB = 300 * 1024

# The peak of this program alone: `ru_maxrss` would start with the parent's peak.
_CHILD = """
import re, sys, django
from pathlib import Path
django.setup()
from django.core.management import CommandError, call_command
call_command("import_discord", sys.argv[1], "--json")
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1))
"""


def test_json_names_every_count(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 7)
    path = write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in ids])
    out = io.StringIO()
    call_command("import_discord", str(path), "--json", stdout=out)
    answer = json.loads(out.getvalue())
    assert answer.keys() >= KEYS
    assert (answer["files"], answer["messages"], answer["written"]) == (1, 7, 7)
    assert answer["failed_files"] == []
    assert live_ids(channel_id, ids) == ids


def test_a_failed_file_is_named_and_the_exit_code_is_one(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in ids])
    (tmp_path / "odd.json").write_text("[]")
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("import_discord", str(tmp_path), "--json", stdout=out, stderr=err)
    assert ended.value.code == 1
    [failed] = json.loads(out.getvalue())["failed_files"]
    assert failed["file"].endswith("odd.json")
    assert "no list of messages" in failed["reason"]
    assert "odd.json: it is not an export" in err.getvalue()
    assert live_ids(channel_id, ids) == ids


def test_problems_are_a_line_a_kind_and_listed_in_the_report(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 300)
    raws = [make_raw(i, id=str(number + 1)) if number < 250 else make_raw(i) for number, i in enumerate(ids)]
    raws[260]["author"] = None
    path = write_export(tmp_path / "pi\x1b[2Jer.json", channel_id, raws)
    for name in ("odd.json", "odder.json"):
        (tmp_path / name).write_text("[]")
    out, err, report = io.StringIO(), io.StringIO(), tmp_path / "report.txt"
    with pytest.raises(SystemExit):
        call_command("import_discord", str(tmp_path), "--json", "--report", str(report), stdout=out, stderr=err)
    lines = err.getvalue().splitlines()
    assert len(lines) == 3, lines
    assert lines[0].startswith("2 × it is not an export: it has no list of messages. First: ")
    assert lines[1].startswith("250 × an id that is not a snowflake. First: ")
    assert "pi[U+001B][2Jer.json, message 1: " in lines[1]
    assert lines[2].endswith(f"message 261: message {ids[260]} has no author")
    listed = [json.loads(line) for line in report.read_text().splitlines()]
    assert len(listed) == 253
    assert [each["message"] for each in listed if each["file"] == str(path)] == [*range(1, 251), 261]
    kinds = {each["kind"]: each["count"] for each in json.loads(out.getvalue())["rejections"]}
    assert kinds == {"an id that is not a snowflake": 250, "no author": 1}


def test_warnings_are_a_line_a_kind_and_listed_in_the_report(tmp_path: Path) -> None:
    listed: list[ImportProblem] = []
    with gathered_warnings(listed.append) as warnings:
        for milliseconds in range(1_001, 1_501):
            logging.getLogger("chatstore.store.cassandra").warning("%.0f ms for %s", milliseconds, "SELECT \x1b[2J")
        logging.getLogger("chatstore.operations").warning("the broker is away")
    assert warnings.format() == ["500 × warning: 1001 ms for SELECT [U+001B][2J", "the broker is away"]
    assert [each.reason for each in listed[:2]] == ["1001 ms for SELECT \x1b[2J", "1002 ms for SELECT \x1b[2J"]
    assert len(listed) == 501


def test_a_report_that_cannot_be_written_stops_before_anything_is(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in ids])
    with pytest.raises(CommandError, match="Could not write the report"):
        call_command("import_discord", str(path), "--report", str(tmp_path / "absent" / "report.txt"))
    assert not live_ids(channel_id, ids)


def test_ids_of_channels_are_given_on_the_command_line(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "pier=1.json", 0, [make_raw(i) for i in ids], id=None)
    call_command("import_discord", str(path), "--channel-id", f"{path}={channel_id}", stdout=io.StringIO())
    assert live_ids(channel_id, ids) == ids
    out = io.StringIO()
    call_command("import_discord", str(path), "--derive-ids", "--json", stdout=out)
    assert json.loads(out.getvalue())["failed_files"] == []
    for odd in (f"{path}=pier", str(path), "quay.json=5"):
        with pytest.raises(CommandError) as refused:
            call_command("import_discord", str(path), "--channel-id", odd, stderr=io.StringIO())
        assert "import again" not in str(refused.value)


def test_a_dry_run_is_reported_as_such(tmp_path: Path) -> None:
    channel_id, ids = fresh_channel(), ids_from(MAY, 3)
    path = write_export(tmp_path / "pier.json", channel_id, [make_raw(i) for i in ids])
    out = io.StringIO()
    call_command("import_discord", str(path), "--dry-run", stdout=out)
    assert "3 messages in 1 files" in out.getvalue()
    assert "3 would be written" in out.getvalue()
    assert not live_ids(channel_id, ids)


def test_the_progress_bar_shows_rate_and_time_left() -> None:
    shown = draw_progress(ImportProgress(bytes_done=25, bytes_total=100, messages=5_000, seconds=10.0))
    assert " 25% " in shown
    assert "5,000 messages" in shown
    assert "500/s" in shown
    assert "0:30 left" in shown
    assert "0%" in draw_progress(ImportProgress(0, 0, 0, 0.0))


@pytest.mark.slow
def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """Import 120 MB of messages in a separate process, measured by the kernel."""
    channel_id, ids = fresh_channel(), ids_from(MAY, 30_000, apart_seconds=120)
    path = tmp_path / "large.json"
    head, tail = json.dumps(make_export(channel_id, [])).split('"messages": []')
    with path.open("w") as file:
        file.write(f'{head}"messages": [')
        for index, message_id in enumerate(ids):
            raw = make_raw(message_id, author=1_000 + index % 700, content="long words " * 300)
            file.write((",\n" if index else "") + json.dumps(raw))
        file.write(f"]{tail}")
    assert path.stat().st_size > 110_000_000
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", _CHILD, str(path)]
    lines = subprocess.run(command, cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, check=True)
    answer, resident_kib = lines.stdout.rsplit("\n", 2)[:2]
    assert json.loads(answer)["written"] == 30_000
    assert int(resident_kib) < RESIDENT_LIMIT_KIB
