"""A command whose purge must wait reports the reason and continues afterwards; it never fails while work continues."""

import io
from collections.abc import Callable, Sequence

import pytest
from django.core.management import CommandError, call_command

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from moderation.models import Purge
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.worker import run_purge
from tests.moderation.channels import (
    buckets_of,
    confirm,
    everything,
    ids_of,
    preview,
    purge_now,
    recent_ids,
    write,
)

OTHER = "import:7"
WAITING = "Waiting behind an import into the channel"


class CallbackStream(io.StringIO):
    """Stream for stderr that calls a function as soon as a wait is reported."""

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__()
        self._then = then

    def write(self, text: str) -> int:
        if WAITING in text:
            self._then()
        return super().write(text)


@pytest.fixture
def ids(channel: Channel) -> Sequence[int]:
    found = recent_ids(20)
    write(channel, found)
    return found


def run(*command: str, then: Callable[[], object]) -> tuple[int, str]:
    """Return (exit code, stderr). then: called while the command waits."""
    err = CallbackStream(then)
    with pytest.raises(SystemExit) as ended:
        call_command(*command, stdout=io.StringIO(), stderr=err)
    return int(str(ended.value.code)), err.getvalue()


def purge_of(channel: Channel) -> tuple[str, ...]:
    return ("purge", "--channel", str(channel.pk), "--everything", "--reason", "spam", "--yes")


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_purge_blocked_by_another_job_waits_and_finishes(channel: Channel, ids: Sequence[int]) -> None:
    assert lock_channel(channel.pk, job=OTHER)
    code, stderr = run(*purge_of(channel), then=lambda: release_channel(channel.pk, job=OTHER))
    assert (code, stderr.count(WAITING)) == (0, 1)
    assert ids_of(channel, *buckets_of(ids)) == []


def test_a_purge_paused_meanwhile_is_not_finished(mona: User, channel: Channel, ids: Sequence[int]) -> None:
    assert lock_channel(channel.pk, job=OTHER)
    code, _ = run(*purge_of(channel), then=lambda: pause_purge(Purge.objects.latest("id").pk, moderator=mona))
    release_channel(channel.pk, job=OTHER)
    assert code == 4
    assert ids_of(channel, *buckets_of(ids)) == ids


def test_without_wait_the_purge_is_left_to_the_workers(channel: Channel, ids: Sequence[int]) -> None:
    assert lock_channel(channel.pk, job=OTHER)
    code, stderr = run(*purge_of(channel), then=interrupt)
    release_channel(channel.pk, job=OTHER)
    assert code == 4
    assert "continues in the background" in stderr


def test_an_undo_blocked_by_another_job_waits_and_finishes(mona: User, channel: Channel, ids: Sequence[int]) -> None:
    purge = purge_now(mona, everything(channel))
    assert lock_channel(channel.pk, job=OTHER)
    code, stderr = run(
        "purge_undo", str(purge.pk), "--reason", "test", then=lambda: release_channel(channel.pk, job=OTHER)
    )
    assert (code, stderr.count(WAITING)) == (0, 1)
    assert ids_of(channel, *buckets_of(ids)) == ids


def test_an_undo_of_a_waiting_purge_shows_what_it_waits_for(mona: User, channel: Channel, ids: Sequence[int]) -> None:
    purge = confirm(mona, preview(mona, everything(channel)))
    assert lock_channel(channel.pk, job=OTHER)
    run_purge(purge.pk, idle_timeout_seconds=0)
    with pytest.raises(CommandError, match=f"cannot be undone in its present state: waiting. {WAITING}"):
        call_command("purge_undo", str(purge.pk), "--reason", "test")
    release_channel(channel.pk, job=OTHER)
