"""Several workers share the steps of a purge, each step once; a locked channel blocks no other."""

import threading
import uuid

import pytest
from django.conf import settings
from django.db import connection

from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.channel_lock import lock_channel, release_channel
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.purging.scheduling import due_purges, workers_needed
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import AllChannelsLocked
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import VICTOR, confirm, ids_of, make_channel, old_ids, preview, write
from tests.moderation.steps import claim_step

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


def test_as_many_workers_are_enqueued_as_a_purge_can_use(mona: User) -> None:
    purge = many_steps(mona)
    assert workers_needed(purge.id) == settings.PURGE_WORKERS == 2
    assert claim_step(purge.id, token=uuid.uuid4()) is not None
    assert workers_needed(purge.id) == 1
    assert purge.id in due_purges()
    assert claim_step(purge.id, token=uuid.uuid4()) is not None
    assert purge.id not in due_purges()


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
