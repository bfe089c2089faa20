"""Output and exit codes of `manage.py purge_undo` and `purge_show`."""

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chatstore.models.users import User
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    buckets_of,
    everything,
    ids_of,
    make_channel,
    old_ids,
    purge_now,
    write,
)


def undo(purge_id: int, *options: str) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("purge_undo", str(purge_id), "--reason", "test", "--json", *options, stdout=out)
    return int(str(ended.value.code)), json.loads(out.getvalue())


def test_the_command_restores_everything_and_the_counts_add_up(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(150)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    code, printed = undo(purge.id)
    assert (code, printed["state"], printed["requested"], printed["restored"]) == (0, "undone", 150, 150)
    outcomes = ("restored", "withdrawn", "still_purged", "already_live", "no_copy", "failed")
    assert sum(printed[name] for name in outcomes) == printed["requested"]
    assert ids_of(channel, *buckets_of(ids)) == ids


def test_one_author_can_be_named(mona: User) -> None:
    channel = make_channel()
    ids = old_ids(150)
    write(channel, ids[:100])
    write(channel, ids[100:], author=WILMA)
    purge = purge_now(mona, everything(channel))
    code, printed = undo(purge.id, "--author", str(VICTOR))
    assert (code, printed["state"], printed["restored"]) == (0, "partly_undone", 100)


def test_an_author_without_deleted_messages_is_invalid_input(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(5))
    purge = purge_now(mona, everything(channel))
    with pytest.raises(CommandError, match="did not delete any") as refused:
        call_command("purge_undo", str(purge.id), "--reason", "test", "--author", str(WILMA))
    assert refused.value.returncode == 2


def test_an_undone_purge_cannot_be_undone_again(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(120))
    purge = purge_now(mona, everything(channel))
    undo(purge.id)
    with pytest.raises(CommandError, match="has restored them already") as refused:
        call_command("purge_undo", str(purge.id), "--reason", "test")
    assert refused.value.returncode == 2


@pytest.mark.parametrize("command", [["purge_undo", "--reason", "test"], ["purge_show"]])
@pytest.mark.parametrize("given", ["1", "victor"])
def test_an_unknown_purge_is_invalid_input(command: Sequence[str], given: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command(*command, given)
    assert refused.value.returncode == 2


def test_show_prints_the_same_as_the_purge(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(120))
    purge = purge_now(mona, everything(channel))
    out = io.StringIO()
    call_command("purge_show", str(purge.id), "--json", stdout=out)
    printed = json.loads(out.getvalue())
    assert (printed["id"], printed["deleted"], printed["state"]) == (str(purge.id), 120, "done")
    out = io.StringIO()
    call_command("purge_show", str(purge.id), stdout=out)
    assert "the whole channel #room" in out.getvalue()
    assert "120 deleted" in out.getvalue()
