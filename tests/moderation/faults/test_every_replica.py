"""Survivors are rewritten on every replica before anything is deleted; a quorum is not sufficient.

Two nodes cannot show the difference, so the keyspace claims three replicas for a while: a quorum of two is available,
all three are not.
"""

from collections.abc import Iterator

import pytest
from django.conf import settings

from chatstore.models.users import User
from chatstore.store import cassandra
from moderation.domain.states import PurgeState, StepState
from moderation.models import Step
from moderation.operations.purging.worker import run_purge
from tests.moderation.channels import (
    WILMA,
    by_victor,
    confirm,
    ids_of,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)

pytestmark = pytest.mark.alone


def report_replicas(count: int) -> None:
    replication = {"class": "NetworkTopologyStrategy", settings.CASSANDRA["datacenter"]: str(count)}
    cql = f"ALTER KEYSPACE {settings.CASSANDRA['keyspace']} WITH replication = {replication}"
    cassandra.submit_to(cassandra.hosts()[0][0], cql, timeout=30).rows()


@pytest.fixture
def _third_replica_is_down() -> Iterator[None]:
    report_replicas(3)
    yield
    report_replicas(2)


@pytest.mark.usefixtures("_third_replica_is_down")
def test_nothing_is_deleted_while_a_replica_lacks_the_survivors(mona: User) -> None:
    channel, ids = make_channel(), old_ids(1_200)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    purge = confirm(mona, preview(mona, by_victor(channel)))
    waiting = run_purge(purge.pk, idle_timeout_seconds=0)
    step = Step.objects.get(purge=purge)
    assert (waiting.state, step.state) == (PurgeState.WAITING, StepState.STAMPED)
    assert "replicas" in waiting.wait_reason
    assert ids_of(channel, step.bucket) == ids
    report_replicas(2)
    Step.objects.filter(purge=purge).update(due_at=None)
    assert run_to_end(purge).state == PurgeState.DONE
    assert ids_of(channel, step.bucket) == ids[1::2]
