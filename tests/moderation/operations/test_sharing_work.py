"""Several workers share the steps of a purge, each step once; a locked channel blocks no other."""

import threading
import uuid
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from chatstore.store.redis import redis_client
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.purging.scheduling import can_be_joined, due_purges
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import AllChannelsLocked
from moderation.operations.steps.totals import totals_of
from moderation.store import active_workers, pace
from moderation.store.active_workers import ActiveProcess
from tests.fake_time import FakeTime
from tests.moderation.channels import VICTOR, confirm, everything, ids_of, make_channel, old_ids, preview, write
from tests.moderation.incident.processes import enqueue_workers, pause_purges_of_other_tests, running_worker
from tests.moderation.steps import claim_step
from tests.waiting import wait_until

BUCKETS_AGO = range(3, 9)


def many_steps(moderator: User) -> Purge:
    """Confirm a purge of two channels with twelve steps."""
    channels = (make_channel(), make_channel())
    for channel in channels:
        for buckets_ago in BUCKETS_AGO:
            write(channel, old_ids(150, buckets_ago=buckets_ago))
    selection = Selection(channel_ids=tuple(channel.pk for channel in channels), where=Author((VICTOR,)))
    return confirm(moderator, preview(moderator, selection))


def test_two_workers_beside_each_other_take_each_step_once(mona: User) -> None:
    purge = many_steps(mona)

    def work() -> None:
        try:
            run_purge(purge.id)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    purge.refresh_from_db()
    assert (purge.state, totals_of(purge).deleted, totals_of(purge).already_gone) == (PurgeState.DONE, 1_800, 0)
    entries = AuditEntry.objects.filter(purge=purge, action="channel_purged").values_list("details", flat=True)
    assert [(entry["steps"], entry["deleted"]) for entry in entries] == [(6, 900), (6, 900)]
    for step in purge.steps.all():
        assert ids_of(Channel.objects.get(pk=step.channel_id), step.bucket) == []


def test_idle_workers_join_a_running_purge_until_each_step_is_claimed(mona: User) -> None:
    purge = many_steps(mona)
    assert not can_be_joined(purge.id)
    for _ in range(12):
        assert claim_step(purge.id, token=uuid.uuid4()) is not None
        assert purge.id not in due_purges()
        assert can_be_joined(purge.id) is (purge.steps.open().free().exists())
    assert not can_be_joined(purge.id)


def test_a_purge_is_joined_only_for_steps_in_channels_that_are_not_locked(mona: User) -> None:
    purge = many_steps(mona)
    busy, free = sorted({step.channel_id for step in purge.steps.all()})
    assert lock_channel(busy, job="import:1")
    assert claim_step(purge.id, token=uuid.uuid4()) is not None
    assert can_be_joined(purge.id)
    purge.steps.filter(channel_id=free).open().free().update(state="counted")
    assert not can_be_joined(purge.id)
    release_channel(busy, job="import:1")
    assert can_be_joined(purge.id)


def test_a_limit_of_workers_can_be_set(mona: User, settings: Settings) -> None:
    settings.PURGE_WORKERS = 2
    purge = many_steps(mona)
    assert claim_step(purge.id, token=uuid.uuid4()) is not None
    assert can_be_joined(purge.id)
    assert claim_step(purge.id, token=uuid.uuid4()) is not None
    assert not can_be_joined(purge.id)


@pytest.mark.slow
@pytest.mark.alone
def test_all_processes_of_a_worker_process_one_purge(mona: User, tmp_path: Path) -> None:
    pause_purges_of_other_tests()
    purge = confirm(mona, preview(mona, everything(many_buckets())))
    tokens: set[uuid.UUID | None] = set()

    def is_done() -> bool:
        tokens.update(purge.steps.leased().values_list("token", flat=True))
        purge.refresh_from_db()
        return purge.state == PurgeState.DONE

    # No beat runs here: each worker invites the next one, at most once a second. The limit makes the purge last longer.
    with running_worker(tmp_path, processes=4, environment={"PURGE_STATEMENTS_PER_SECOND": "2000"}):
        enqueue_workers(purge.id)
        wait_until(is_done)
    assert len(tokens) == 4
    assert totals_of(purge).deleted == 60 * 600


def many_buckets() -> Channel:
    """Return a channel whose 60 buckets are deleted by ranges, one by one: they are too large for groups."""
    channel = make_channel()
    for buckets_ago in range(3, 63):
        write(channel, old_ids(600, buckets_ago=buckets_ago))
    return channel


def test_the_workers_of_a_purge_share_its_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime()
    monkeypatch.setattr(pace, "time", clock)
    others = [0]
    own = pace.Pace(100, workers=lambda: 1 + others[0])
    clock.now += 1
    own.wait(100)
    assert clock.slept == []
    others[0] = 3
    clock.now += 1
    own.wait(50)
    assert clock.slept == [pytest.approx(1.0)]
    assert own.rate == 25
    others[0] = 0
    clock.now += 1
    own.wait(0)
    assert own.rate == 100


def test_the_number_of_workers_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime()
    monkeypatch.setattr(pace, "time", clock)
    asked: list[float] = []

    def workers() -> int:
        asked.append(clock.now)
        return 1

    own = pace.Pace(1_000, workers=workers)
    for _ in range(30):
        clock.now += 0.1
        own.wait(1)
    assert len(asked) == 3


def test_active_processes_are_counted_until_they_are_gone() -> None:
    redis_client().delete("active_workers")
    first, second = ActiveProcess(), ActiveProcess()
    assert (first.count(), second.count(), first.count()) == (1, 2, 2)
    redis_client().zadd("active_workers", {"killed": 1})
    assert ActiveProcess().count() == 3
    assert redis_client().ttl("active_workers") > 0


def test_without_redis_a_process_counts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable() -> None:
        raise StoreUnavailable("Redis is unavailable")

    monkeypatch.setattr(active_workers, "redis_client", unavailable)
    assert ActiveProcess().count() == 1
    assert not active_workers.reserve_join(expires_seconds=1)


def test_a_channel_locked_by_another_job_is_skipped(mona: User) -> None:
    purge = many_steps(mona)
    busy, free = sorted({step.channel_id for step in purge.steps.all()})
    assert lock_channel(busy, job="import:1")
    try:
        ended = run_purge(purge.id, idle_timeout_seconds=0)
        assert ended.state == PurgeState.WAITING
        assert totals_of(purge).deleted == 900
        assert set(purge.steps.filter(state="counted").values_list("channel_id", flat=True)) == {free}
        with pytest.raises(AllChannelsLocked, match="import:1"):
            claim_step(purge.id, token=uuid.uuid4())
    finally:
        release_channel(busy, job="import:1")
    assert run_purge(purge.id, idle_timeout_seconds=60).state == PurgeState.DONE
