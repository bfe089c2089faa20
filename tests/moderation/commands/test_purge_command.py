"""Output and exit codes of `manage.py purge`."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.management.commands import purge as purge_command
from moderation.models import Purge
from moderation.operations.purging.lifecycle import discard_preview
from tests.moderation.channels import VICTOR, WILMA, buckets_of, ids_of, make_channel, old_ids, recent_ids, write

COUNTS = {"manifest", "deleted", "already_gone", "held", "failed", "left"}
KEYS = {"id", "state", "manifest_hash", *COUNTS, "seconds", "buckets"}


def run(channel: Channel | int, *options: str) -> tuple[int, Any, str]:
    """Return (exit code, the JSON object or None, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    channel_id = channel if isinstance(channel, int) else channel.id
    with pytest.raises(SystemExit) as ended:
        call_command(
            "purge",
            "--channel",
            str(channel_id),
            "--reason",
            "spam",
            "--json",
            *options,
            stdout=out,
            stderr=err,
        )
    printed = out.getvalue().strip()
    return int(str(ended.value.code)), json.loads(printed) if printed else None, err.getvalue()


def test_the_command_deletes_the_selection_and_prints_the_totals() -> None:
    channel = make_channel()
    ids = old_ids(250)
    write(channel, ids[:200])
    write(channel, ids[200:], author=WILMA)
    code, printed, _ = run(channel, "--author", str(VICTOR), "--yes")
    assert (code, set(printed)) == (0, KEYS)
    assert (printed["manifest"], printed["deleted"], printed["left"], printed["state"]) == (
        200,
        200,
        0,
        "done",
    )
    assert printed["buckets"] == {"rows": 0, "drop": 0, "ranges": 1, "rewrite": 0, "later": 0}
    assert ids_of(channel, *buckets_of(ids)) == ids[200:]


def test_after_is_inclusive_and_before_exclusive_in_utc_unless_a_zone_is_given() -> None:
    channel = make_channel()
    ids = [message_id >> 22 << 22 for message_id in old_ids(50)]
    write(channel, ids)
    after = time_of(ids[10]).isoformat()
    before = time_of(ids[20]).replace(tzinfo=None).isoformat()
    code, printed, _ = run(channel, "--after", after, "--before", before, "--yes")
    assert (code, printed["deleted"]) == (0, 10)
    assert ids_of(channel, *buckets_of(ids)) == ids[:10] + ids[20:]


def test_messages_that_are_not_due_yet_are_not_a_failure(settings: Settings) -> None:
    settings.PURGE_LATER_TOMBSTONES = 250
    channel = make_channel()
    write(channel, recent_ids(700))
    code, printed, _ = run(channel, "--everything", "--yes")
    assert (code, printed["state"], printed["deleted"]) == (0, "waiting", 250)
    assert printed["buckets"]["later"] == printed["left"] == 450


def test_nothing_matched_exits_with_three() -> None:
    channel = make_channel()
    write(channel, old_ids(3), author=WILMA)
    code, printed, _ = run(channel, "--author", str(VICTOR), "--yes")
    assert (code, printed["state"], printed["manifest"]) == (3, "nothing_matched", 0)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_preview_that_is_discarded_during_its_scan_exits_with_two(
    options: tuple[str, ...], mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = make_channel()
    ids = old_ids(3)
    write(channel, ids)
    monkeypatch.setattr(purge_command, "scan_to_end", lambda purge_id: discard_preview(purge_id, moderator=mona))
    error = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(
            "purge", "--channel", str(channel.pk), "--everything", "--reason", "spam", "--yes", *options, stderr=error
        )
    assert (ended.value.code, "The preview was discarded" in error.getvalue()) == (2, True)
    assert ids_of(channel, *buckets_of(ids)) == ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Nothing is selected"),
        (("--everything", "--author", "5"), "whole channel cannot be combined"),
        (("--author", "no-such-user"), "There is no user called"),
        (("--after", "someday"), "is not a valid date"),
        (("--after", "2999-01-01"), "future"),
        (("--after", "2024-02-01", "--before", "2024-01-01"), "must be after its start"),
        (("--everything", "--as", "no-such-user"), "no account called"),
    ],
)
def test_invalid_input_is_reported_and_exits_with_two(options: tuple[str, ...], message: str) -> None:
    channel = make_channel()
    code, printed, error = run(channel, *options, "--yes")
    assert (code, printed) == (2, None)
    assert message in error


def test_an_unknown_channel_exits_with_two() -> None:
    code, _, error = run(987654321, "--everything", "--yes")
    assert code == 2
    assert "channel" in error.lower()


def test_without_a_terminal_the_yes_option_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = make_channel()
    ids = old_ids(4)
    write(channel, ids)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, _, error = run(channel, "--everything")
    assert code == 2
    assert "--yes" in error
    assert ids_of(channel, *buckets_of(ids)) == ids
    given_up = Purge.objects.latest("id")
    assert given_up.selection["channels"] == [str(channel.pk)]
    assert given_up.state == PurgeState.EXPIRED


def test_the_command_asks_for_a_reason() -> None:
    with pytest.raises(CommandError, match="--reason"):
        call_command("purge", "--channel", "1", "--everything")
