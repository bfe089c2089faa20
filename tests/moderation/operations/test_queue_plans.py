"""Workers find the open steps of a purge without reading those that were counted before."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from chatstore.models import ChannelLock
from chatstore.models.users import User
from moderation.models import Purge, Step
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.scheduling import can_be_joined, due_purges, unblocked_purges
from moderation.operations.purging.wait_reasons import wait_of
from moderation.operations.purging.worker import has_due_steps
from moderation.operations.steps.claiming import (
    AllChannelsLocked,
    claim_steps,
    job_of,
    release_done_channels,
    renew_claims,
)
from moderation.operations.steps.groups import MAX_GROUP_STEPS
from tests.moderation.many_steps import make_large_purge
from tests.plans import explain, rows_read

COUNTED, PENDING = 3_000, 300

STEPS, LOCKS = Step._meta.db_table, ChannelLock._meta.db_table


@pytest.fixture
def purge(mona: User) -> Iterator[Purge]:
    """A running purge most of whose steps are counted."""
    purge = make_large_purge(mona, counted=COUNTED, pending=PENDING)
    yield purge
    Step.objects.filter(purge=purge).delete()
    ChannelLock.objects.filter(job=job_of(purge.pk)).delete()


@pytest.mark.parametrize(
    "operation",
    [
        lambda purge: claim_steps(purge.pk, token=uuid.uuid4()),
        lambda purge: can_be_joined(purge.pk),
        lambda purge: has_due_steps(purge.pk),
        lambda purge: wait_of(None, purge),
    ],
    ids=["claim", "can be joined", "has due steps", "wait reason"],
)
def test_the_next_steps_are_found_without_reading_the_others(
    operation: Callable[[Purge], object], purge: Purge
) -> None:
    statements = explain(lambda: operation(purge))
    assert 0 < rows_read(statements, STEPS) <= 6 * MAX_GROUP_STEPS


def test_the_poll_does_not_read_counted_steps(purge: Purge) -> None:
    found: list[int] = []
    before = rows_read(explain(due_purges), STEPS)
    statements = explain(lambda: found.extend(due_purges()))
    assert purge.pk in found
    assert rows_read(statements, STEPS) == before < COUNTED


def test_leases_are_renewed_by_reading_claimed_steps_only(purge: Purge) -> None:
    token = uuid.uuid4()
    claimed = claim_steps(purge.pk, token=token)
    statements = explain(lambda: renew_claims(token))
    assert len(claimed) == MAX_GROUP_STEPS
    assert rows_read(statements, STEPS) < PENDING + 3 * MAX_GROUP_STEPS
    before = Step.objects.get(pk=claimed[0].pk).lease_until
    renew_claims(token)
    after = Step.objects.get(pk=claimed[-1].pk).lease_until
    assert before is not None
    assert after is not None
    assert after > before


def test_a_purge_whose_channels_are_all_locked_learns_so_in_a_few_statements(purge: Purge) -> None:
    channels = Step.objects.filter(purge=purge).values_list("channel_id", flat=True)
    ChannelLock.objects.bulk_create(ChannelLock(channel_id=i, job="import:7", since=purge.created_at) for i in channels)

    def claim() -> None:
        with pytest.raises(AllChannelsLocked, match="import:7"):
            claim_steps(purge.pk, token=uuid.uuid4())

    try:
        assert len(explain(claim)) <= 5
    finally:
        ChannelLock.objects.filter(job="import:7").delete()


def test_locks_are_released_by_one_statement(purge: Purge) -> None:
    channels = Step.objects.filter(purge=purge).values_list("channel_id", flat=True)
    ChannelLock.objects.bulk_create(
        ChannelLock(channel_id=i, job=job_of(purge.pk), since=purge.created_at) for i in channels
    )
    statements = explain(lambda: advance_purge(purge.pk))
    assert [LOCKS in one.sql for one in statements if one.sql.startswith("DELETE")] == [True]
    advance_purge(purge.pk)
    assert not ChannelLock.objects.filter(job=job_of(purge.pk)).exists()


def test_the_channels_of_a_group_are_released_by_one_statement(purge: Purge) -> None:
    steps = claim_steps(purge.pk, token=uuid.uuid4())
    Step.objects.with_keys([step.pk for step in steps]).update(state="counted", token=None, lease_until=None)
    statements = explain(lambda: release_done_channels(steps))
    assert len([one for one in statements if one.sql.startswith("DELETE")]) == 1
    assert rows_read(statements, STEPS) <= 4 * MAX_GROUP_STEPS


def test_a_purge_that_waits_for_a_channel_is_found_by_its_open_steps_there(purge: Purge, mona: User) -> None:
    waiting = make_large_purge(mona, counted=0, pending=1)
    Step.objects.filter(purge=waiting).update(channel_id=Step.objects.get(purge=purge, ordinal=0).channel_id)
    Step.objects.filter(purge=purge).exclude(ordinal=0).delete()
    found: list[int] = []
    statements = explain(lambda: found.extend(unblocked_purges(purge.pk)))
    assert found == [waiting.pk]
    assert rows_read(statements, STEPS) < PENDING
