"""Progress and remaining time of a purge or an undo, computed from its active time and the requested messages."""

import datetime as dt

import pytest
from django.test import Client

from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access.audit import record_action
from moderation.operations.preview.purge_summary import active_seconds_of, progress_of, undo_progress_of
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.changed_audit_log import change_audit_log
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)


def minutes_ago(minutes: float) -> dt.datetime:
    return postgres_now() - dt.timedelta(minutes=minutes)


def note(purge: Purge, action: str, *, minutes: float) -> None:
    entry = record_action(action, actor=None, purge=purge)
    change_audit_log("UPDATE moderation_auditentry SET at = %s WHERE id = %s", minutes_ago(minutes), entry.pk)


@pytest.fixture
def half_done_purge(mona: User) -> Purge:
    """A purge that started 100 minutes ago, with one of two buckets deleted."""
    channel = make_channel()
    write(channel, [*old_ids(50, buckets_ago=4), *old_ids(50, buckets_ago=3)])
    purge = confirm(mona, preview(mona, everything(channel)))
    last = purge.steps.order_by("-ordinal")[0]
    purge.steps.filter(ordinal=last.ordinal).update(due_at=postgres_now() + dt.timedelta(hours=1))
    run_purge(purge.pk, idle_timeout_seconds=0)
    Purge.objects.filter(pk=purge.pk).update(started_at=minutes_ago(100), confirmed_at=minutes_ago(500))
    purge.refresh_from_db()
    return purge


def test_the_time_left_excludes_pauses_and_the_wait_before_the_start(half_done_purge: Purge) -> None:
    note(half_done_purge, "purge_paused", minutes=95)
    note(half_done_purge, "purge_resumed", minutes=5)
    progress = progress_of(half_done_purge)
    assert progress.seconds_left == pytest.approx(10 * 60, abs=30)


def test_an_open_pause_counts_up_to_now(half_done_purge: Purge) -> None:
    note(half_done_purge, "purge_paused", minutes=60)
    assert active_seconds_of(half_done_purge) == pytest.approx(40 * 60, abs=30)


def test_the_time_between_an_end_and_a_second_attempt_is_not_counted(half_done_purge: Purge) -> None:
    note(half_done_purge, "purge_cancelled", minutes=80)
    note(half_done_purge, "purge_finish_requested", minutes=20)
    assert active_seconds_of(half_done_purge) == pytest.approx(40 * 60, abs=30)


def test_a_partial_undo_shows_how_many_messages_were_requested(client: Client, mona: User) -> None:
    channel, ids = make_channel(), recent_ids(40)
    write(channel, ids[:30])
    write(channel, ids[30:], author=WILMA)
    purge = purge_now(mona, everything(channel))
    client.force_login(mona)
    for part, expected in (
        (UndoPart(message_ids=tuple(ids[:3])), 3),
        (UndoPart(author_ids=(WILMA,)), 10),
        (UndoPart(channel_ids=(channel.pk,)), 27),
    ):
        request_undo(purge.pk, moderator=mona, part=part, reason="Appeal accepted")
        purge.refresh_from_db()
        progress = undo_progress_of(purge)
        assert progress is not None
        assert (progress.expected, progress.decided) == (expected, 0)
        assert f"Restoring {expected} of 40 messages" in client.get(f"/purges/{purge.pk}/").content.decode()
        run_to_end(purge)
        purge.refresh_from_db()
    assert purge.state == PurgeState.UNDONE
    assert undo_progress_of(purge) is None
    assert "Restored 40 messages" in client.get(f"/purges/{purge.pk}/").content.decode()


def test_an_estimate_over_two_channels_uses_the_finished_steps(mona: User) -> None:
    channels = [make_channel() for _ in range(2)]
    author = VICTOR + channels[0].pk % 1_000_000
    for channel in channels:
        write(channel, recent_ids(20), author=author)
    purge = purge_now(mona, Selection(where=Author((author,))))
    undo = request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    last = undo.steps.order_by("-ordinal")[0]
    undo.steps.filter(ordinal=last.ordinal).update(due_at=postgres_now() + dt.timedelta(hours=1))
    run_purge(purge.pk, idle_timeout_seconds=0)
    purge.refresh_from_db()
    progress = undo_progress_of(purge)
    assert progress is not None
    assert (progress.expected, progress.decided) == (40, 20)
    assert progress.seconds_left is not None
