"""A purge continues by itself after its worker was killed, suspended or disconnected at any state change.

Each time exactly the manifest is deleted in the end, every count is correct, and no user has to act.
"""

from __future__ import annotations

import signal
import time
from collections import deque

import pytest
from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.operations.coordination.timestamps import issue_stamp
from chatstore.store import messages
from moderation.domain.planner import Way
from moderation.domain.states import StepState
from moderation.operations.steps.totals import sum_of
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.faults.real_workers.arrows import cut, find_blocked, let_go, stop_at, wait_for_blocked
from tests.moderation.faults.real_workers.doomed import (
    Doomed,
    assert_done_exactly,
    assert_undone_exactly,
    doom,
    preview_doomed,
)
from tests.moderation.faults.real_workers.workers import Workers
from tests.moderation.rooms import VICTOR, confirm
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ARROWS = (
    StepState.QUARANTINING,
    StepState.QUARANTINED,
    StepState.STAMPED,
    StepState.REWRITTEN,
    StepState.DELETED,
    StepState.VERIFIED,
    StepState.CLOSED,
    StepState.COUNTED,
)

ALL_KILLED_WITHIN_SECONDS = 180
"""Each kill costs a lease of three seconds, and two kills of a range step another ten seconds after its timestamp."""


def test_a_worker_killed_at_each_arrow_is_followed_by_one_that_goes_on(mona: User, workers: Workers) -> None:
    taken_back = doom(mona, Way.RANGES)
    wait_until(taken_back.is_finished)
    every = [preview_doomed(mona, way) for way in (Way.ROWS, Way.RANGES, Way.DROP, Way.REWRITE)]
    ahead = {doomed.purge.id: deque(ARROWS) for doomed in (taken_back, *every)}
    for purge_id in ahead:
        stop_at(purge_id, ARROWS[0])
    for doomed in every:
        confirm(mona, doomed.purge)
    undo = ask_undo(taken_back.purge.id, moderator=mona, part=UndoPart())
    end = time.monotonic() + ALL_KILLED_WITHIN_SECONDS
    while any(ahead.values()):
        time.sleep(0.05)
        assert time.monotonic() < end, f"no worker reached these breakpoints: {ahead}"
        for doomed in (taken_back, *every):
            kill_at_next_arrow(doomed, ahead[doomed.purge.id], workers)
    for doomed in (taken_back, *every):
        wait_until(doomed.is_finished)
    for doomed in every:
        assert_done_exactly(doomed)
    assert_undone_exactly(taken_back, undo)


def kill_at_next_arrow(doomed: Doomed, arrows: deque[StepState], workers: Workers) -> None:
    """Kill the worker that is blocked at the next breakpoint, if any, and set the following breakpoint."""
    backend = find_blocked(doomed.purge)
    if backend is None or not arrows:
        return
    arrow = arrows.popleft()
    stored = (StepState.PENDING, *ARROWS)[ARROWS.index(arrow)]
    assert doomed.state() == stored
    workers.kill(workers.at(backend))
    cut(backend)
    let_go(doomed.purge)
    if arrows:
        stop_at(doomed.purge.id, arrows[0])


def test_a_worker_stopped_within_a_move_is_cut_off_and_changes_nothing(mona: User, workers: Workers) -> None:
    """The worker locks rows that others need; its deletes are sent but not yet recorded as sent."""
    doomed = doom(mona, Way.ROWS)
    stop_at(doomed.purge.id, StepState.DELETED)
    worker = workers.at(wait_for_blocked(doomed.purge))
    worker.send_signal(signal.SIGSTOP)
    let_go(doomed.purge)
    wait_until(doomed.is_finished)
    assert_done_exactly(doomed)
    put_back(doomed)
    said_before = len(workers.said())
    worker.send_signal(signal.SIGCONT)
    wait_until(lambda: "raised unexpected: OperationalError" in workers.said()[said_before:])
    assert_put_back_stays(doomed)


def test_a_purge_goes_on_when_the_connection_to_postgres_is_lost(mona: User, workers: Workers) -> None:
    doomed = doom(mona, Way.DROP)
    stop_at(doomed.purge.id, StepState.VERIFIED)
    cut(wait_for_blocked(doomed.purge))
    let_go(doomed.purge)
    wait_until(doomed.is_finished)
    assert_done_exactly(doomed)


def put_back(doomed: Doomed) -> None:
    """Restore one of the deleted messages, with a timestamp as an undo writes it."""
    message = Message(channel_id=doomed.channel.id, message_id=doomed.going[7], author_id=VICTOR, content="back again")
    messages.insert_message(message, stamp_us=issue_stamp(doomed.channel.id, bucket_of(doomed.going[7])))


def assert_put_back_stays(doomed: Doomed) -> None:
    """Wait as long as a worker would need to delete the message again."""
    time.sleep(0.5)
    assert doomed.left() == sorted([*doomed.staying, doomed.going[7]])
    assert sum_of(doomed.purge).deleted == len(doomed.going)
