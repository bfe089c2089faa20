"""A Cassandra node dies during purges and a preview, and comes back.

With two replicas nothing can be decided without it: everything waits, shows the reason, and continues by itself.
Nothing has failed in the end.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from chatstore.local.layout import read_stack
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_owner
from devstack.servers import start_node, stop_node
from moderation.domain.planner import DeleteStrategy
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import by_victor, confirm
from tests.moderation.faults.real_workers.breakpoints import clear_breakpoint, set_breakpoint, wait_for_blocked
from tests.moderation.faults.real_workers.purge_fixture import (
    PurgeFixture,
    assert_done_exactly,
    make_confirmed,
    make_previewed,
)
from tests.moderation.faults.real_workers.workers import Workers
from tests.waiting import wait_until, wait_until_nodes_are_up

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SECOND_NODE = 1


def test_purges_and_a_preview_wait_for_a_dead_node_and_continue(mona: User, workers: Workers) -> None:
    stack = read_stack(os.environ)
    stamped, queued = make_confirmed(mona, DeleteStrategy.RANGES), make_previewed(mona, DeleteStrategy.ROWS)
    set_breakpoint(stamped.purge.id, StepState.REWRITTEN)
    wait_for_blocked(stamped.purge)
    stop_node(stack, SECOND_NODE, kill=True)
    try:
        clear_breakpoint(stamped.purge)
        confirm(mona, queued.purge)
        drafted = draft_purge(moderator=mona, selection=by_victor(stamped.channel))
        for purge in (stamped.purge, queued.purge, drafted):
            wait_until(partial(waits_for_store, purge))
        assert_nothing_counted(stamped, queued)
    finally:
        start_node(stack, SECOND_NODE)
        wait_until_nodes_are_up()
    for fixture in (stamped, queued):
        wait_until(fixture.is_finished)
        assert_done_exactly(fixture)
    wait_until(lambda: state_of(drafted) in (PurgeState.READY, PurgeState.NOTHING_MATCHED))


def waits_for_store(purge: Purge) -> bool:
    """Return whether the purge waits and shows the missing replica as the reason."""
    purge.refresh_from_db()
    return purge.state in (PurgeState.WAITING, PurgeState.SCANNING) and "replica" in purge.wait_reason


def assert_nothing_counted(stamped: PurgeFixture, queued: PurgeFixture) -> None:
    """Check that the stamped purge keeps its channel locked and that the other one has not begun."""
    assert stamped.state() == StepState.REWRITTEN
    assert queued.state() == StepState.PENDING
    assert lock_owner(stamped.channel.id) == f"purge:{stamped.purge.id}"


def state_of(purge: Purge) -> str:
    return Purge.objects.values_list("state", flat=True).get(id=purge.id)
