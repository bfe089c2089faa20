"""A purge continues by itself after its worker was killed, suspended or disconnected at any state change.

Each time exactly the manifest is deleted in the end, every count is correct, and no user has to intervene.
"""

from __future__ import annotations

import signal
import time
from collections import deque

import pytest

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.models.users import User
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.store import messages
from moderation.domain.planner import DeleteStrategy
from moderation.domain.states import StepState, UndoStepState
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import VICTOR, confirm
from tests.moderation.faults.real_workers.breakpoints import (
    clear_breakpoint,
    find_blocked,
    set_breakpoint,
    terminate_backend,
    wait_for_blocked,
)
from tests.moderation.faults.real_workers.purge_fixture import (
    PurgeFixture,
    assert_done_exactly,
    assert_undone_exactly,
    make_confirmed,
    make_previewed,
)
from tests.moderation.faults.real_workers.workers import Workers
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Breakpoint = StepState | UndoStepState

BREAKPOINTS: tuple[Breakpoint, ...] = (
    StepState.QUARANTINING,
    StepState.QUARANTINED,
    StepState.STAMPED,
    StepState.REWRITTEN,
    StepState.DELETED,
    StepState.VERIFIED,
    StepState.CLOSED,
    StepState.COUNTED,
)

UNDO_BREAKPOINTS: tuple[Breakpoint, ...] = (
    UndoStepState.PLANNING,
    UndoStepState.STAMPED,
    UndoStepState.RESTORED,
    UndoStepState.VERIFIED,
    UndoStepState.CLOSED,
    UndoStepState.COUNTED,
)

MAX_SECONDS_FOR_ALL_KILLS = 180
"""Each kill costs a lease of three seconds, and two kills of a range step another ten seconds after its timestamp."""


def test_another_worker_continues_after_a_kill_at_each_breakpoint(mona: User, workers: Workers) -> None:
    undone = make_confirmed(mona, DeleteStrategy.RANGES)
    wait_until(undone.is_finished)
    every = [
        make_previewed(mona, strategy)
        for strategy in (DeleteStrategy.ROWS, DeleteStrategy.RANGES, DeleteStrategy.DROP, DeleteStrategy.REWRITE)
    ]
    ahead = {undone.purge.id: deque(UNDO_BREAKPOINTS)} | {fixture.purge.id: deque(BREAKPOINTS) for fixture in every}
    for purge_id, breakpoints in ahead.items():
        set_breakpoint(purge_id, breakpoints[0])
    for fixture in every:
        confirm(mona, fixture.purge)
    undo = request_undo(undone.purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    end = time.monotonic() + MAX_SECONDS_FOR_ALL_KILLS
    while any(ahead.values()):
        time.sleep(0.05)
        assert time.monotonic() < end, f"no worker reached these breakpoints: {ahead}"
        for fixture in (undone, *every):
            kill_at_next_breakpoint(fixture, ahead[fixture.purge.id], workers)
    for fixture in (undone, *every):
        wait_until(fixture.is_finished)
    for fixture in every:
        assert_done_exactly(fixture)
    assert_undone_exactly(undone, undo)


def kill_at_next_breakpoint(fixture: PurgeFixture, breakpoints: deque[Breakpoint], workers: Workers) -> None:
    """Kill the worker that is blocked at the next breakpoint, if any, and set the following breakpoint."""
    backend = find_blocked(fixture.purge)
    if backend is None or not breakpoints:
        return
    breakpoint_state = breakpoints.popleft()
    every = BREAKPOINTS if isinstance(breakpoint_state, StepState) else UNDO_BREAKPOINTS
    assert fixture.state() == ("pending", *every)[every.index(breakpoint_state)]
    workers.kill(workers.worker_of(backend))
    terminate_backend(backend)
    clear_breakpoint(fixture.purge)
    if breakpoints:
        set_breakpoint(fixture.purge.id, breakpoints[0])


def test_a_worker_paused_inside_a_transition_is_disconnected_and_changes_nothing(mona: User, workers: Workers) -> None:
    """The worker locks rows that others need; its deletes are sent but not yet recorded as sent."""
    fixture = make_confirmed(mona, DeleteStrategy.ROWS)
    set_breakpoint(fixture.purge.id, StepState.DELETED)
    worker = workers.worker_of(wait_for_blocked(fixture.purge))
    worker.send_signal(signal.SIGSTOP)
    clear_breakpoint(fixture.purge)
    wait_until(fixture.is_finished)
    assert_done_exactly(fixture)
    restore_one_message(fixture)
    logged_before = len(workers.log_text())
    worker.send_signal(signal.SIGCONT)
    wait_until(lambda: "raised unexpected: OperationalError" in workers.log_text()[logged_before:])
    assert_restored_message_is_kept(fixture)


def test_a_purge_continues_after_its_postgres_connection_is_lost(mona: User, workers: Workers) -> None:
    fixture = make_confirmed(mona, DeleteStrategy.DROP)
    set_breakpoint(fixture.purge.id, StepState.VERIFIED)
    terminate_backend(wait_for_blocked(fixture.purge))
    clear_breakpoint(fixture.purge)
    wait_until(fixture.is_finished)
    assert_done_exactly(fixture)


def restore_one_message(fixture: PurgeFixture) -> None:
    """Restore one of the deleted messages, with a timestamp as an undo writes it."""
    message = Message(
        channel_id=fixture.channel.id, message_id=fixture.matched_ids[7], author_id=VICTOR, content="back again"
    )
    messages.insert_message(message, stamp_us=issue_stamp(fixture.channel.id, bucket_of(fixture.matched_ids[7])))


def assert_restored_message_is_kept(fixture: PurgeFixture) -> None:
    """Wait as long as a worker would need to delete the message again."""
    time.sleep(0.5)
    assert fixture.remaining_ids() == sorted([*fixture.kept_ids, fixture.matched_ids[7]])
    assert totals_of(fixture.purge).deleted == len(fixture.matched_ids)
