"""A Cassandra node dies during purges and a preview, and comes back.

With two replicas nothing can be decided without it: everything waits, shows the reason, and continues by itself.
Nothing has failed in the end.
"""

from __future__ import annotations

import os
from functools import partial

import pytest
from django.contrib.auth.models import User

from chatstore.local.layout import read_stack
from chatstore.operations.coordination.channel_lock import holder_of
from devstack.servers import start_node, stop_node
from moderation.domain.planner import Way
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.faults.real_workers.arrows import let_go, stop_at, wait_for_blocked
from tests.moderation.faults.real_workers.doomed import (
    Doomed,
    assert_done_exactly,
    doom,
    preview_doomed,
)
from tests.moderation.faults.real_workers.workers import Workers
from tests.moderation.rooms import by_victor, confirm
from tests.waiting import wait_until, wait_until_nodes_are_up

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SECOND_NODE = 1


def test_purges_and_a_preview_wait_for_a_dead_node_and_go_on(mona: User, workers: Workers) -> None:
    stack = read_stack(os.environ)
    stamped, queued = doom(mona, Way.RANGES), preview_doomed(mona, Way.ROWS)
    stop_at(stamped.purge.id, StepState.REWRITTEN)
    wait_for_blocked(stamped.purge)
    stop_node(stack, SECOND_NODE, kill=True)
    try:
        let_go(stamped.purge)
        confirm(mona, queued.purge)
        drafted = draft_purge(moderator=mona, selection=by_victor(stamped.channel))
        for purge in (stamped.purge, queued.purge, drafted):
            wait_until(partial(waits_for_store, purge))
        assert_nothing_counted(stamped, queued)
    finally:
        start_node(stack, SECOND_NODE)
        wait_until_nodes_are_up()
    for doomed in (stamped, queued):
        wait_until(doomed.is_finished)
        assert_done_exactly(doomed)
    wait_until(lambda: state_of(drafted) in (PurgeState.READY, PurgeState.NOTHING_MATCHED))


def waits_for_store(purge: Purge) -> bool:
    """Return whether the purge waits and shows the missing replica as the reason."""
    purge.refresh_from_db()
    return purge.state in (PurgeState.WAITING, PurgeState.SCANNING) and "replica" in purge.wait_reason


def assert_nothing_counted(stamped: Doomed, queued: Doomed) -> None:
    """Check that the stamped purge keeps its channel locked and that the other one has not begun."""
    assert stamped.state() == StepState.REWRITTEN
    assert queued.state() == StepState.PENDING
    assert holder_of(stamped.channel.id) == f"purge:{stamped.purge.id}"


def state_of(purge: Purge) -> str:
    return Purge.objects.values_list("state", flat=True).get(id=purge.id)
