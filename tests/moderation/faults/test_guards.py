"""Each check that a step makes before it deletes works on its own: the guarded fault is provoked."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pytest
from pytest_django import Settings

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now_us, wall_clock_us
from chatstore.store import cassandra, messages
from moderation.domain.states import PurgeState, StepState
from moderation.models import Step
from moderation.operations.purging import verification, worker
from moderation.operations.purging.quarantine import QuarantinedStep, on_disk_at_us
from moderation.operations.purging.stamping import stamp_steps
from moderation.operations.steps.claiming import StepLost
from moderation.store import quarantine
from moderation.store.pace import Pace
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    claim,
    confirm,
    everything,
    ids_of,
    old_ids,
    preview,
    run_to_end,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step


def mixed(channel: Channel) -> list[int]:
    """Write messages of Victor and Wilma in turns, so that Wilma's must be rewritten."""
    ids = old_ids(1_200)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    return ids


def losing_one(call: Callable[..., int], *, of: str) -> Callable[..., int]:
    """Return `call`, which executes batches, but without the first row of a statement that starts with `of`."""
    lost = False

    def send(cql: str, groups: Iterable[Sequence[tuple[object, ...]]], **named: object) -> int:
        def all_but_one() -> Iterator[Sequence[tuple[object, ...]]]:
            nonlocal lost
            for group in groups:
                kept = group if lost or not cql.startswith(of) else group[1:]
                lost = lost or kept is not group
                if kept:
                    yield kept

        return call(cql, all_but_one(), **named)

    return send


def test_nothing_is_deleted_while_a_quarantine_chunk_is_missing(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = old_ids(300)
    write(channel, ids)
    step = claim(confirm(mona, preview(mona, everything(channel))))
    send = losing_one(cassandra.execute_batches, of="INSERT INTO quarantine")
    monkeypatch.setattr(cassandra, "execute_batches", send)
    with pytest.raises(StoreUnavailable, match="differ from what was written; nothing was deleted"):
        quarantine_step(step, pace=Pace(10_000))
    assert ids_of(channel, step.bucket) == ids


def test_nothing_is_deleted_until_survivors_are_rewritten(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = mixed(channel)
    step = claim(confirm(mona, preview(mona, by_victor(channel))))
    kept = quarantine_step(step, pace=Pace(10_000))
    stamp_step(step, kept)
    write_batches = cassandra.execute_batch_jobs

    def all_but_the_first(jobs: Iterator[tuple[str, list[tuple[object, ...]]]], **named: object) -> None:
        next(jobs)
        write_batches(jobs, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cassandra, "execute_batch_jobs", all_but_the_first)
    with pytest.raises(StoreUnavailable, match="messages to keep could not be rewritten yet"):
        finish_step(step, pace=Pace(10_000), quarantined=kept)
    assert Step.objects.get(purge_id=step.purge_id).state == StepState.STAMPED
    assert ids_of(channel, step.bucket) == ids


def test_a_long_retried_post_of_a_gateway_with_a_slow_clock_survives_the_range_delete(
    mona: User, channel: Channel
) -> None:
    ids = old_ids(301)
    late = ids.pop(150)
    write(channel, ids)
    step = claim(confirm(mona, preview(mona, everything(channel))))
    kept = quarantine_step(step, pace=Pace(10_000))
    assert step.read_stamp is not None
    # Five seconds slow and given up after four more: writes of such a gateway arrive after the read.
    message = Message(channel_id=channel.id, message_id=late, author_id=WILMA, content="me too")
    messages.insert_message(message, stamp_us=step.read_stamp - 8_900_000)
    stamp_step(step, kept)
    finish_step(step, pace=Pace(10_000), quarantined=kept)
    assert ids_of(channel, step.bucket) == [late]


def test_no_range_is_stamped_before_the_quarantine_is_on_disk(
    mona: User, channel: Channel, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CASSANDRA = settings.CASSANDRA | {"commitlog_sync_period_ms": 3_000}
    write(channel, old_ids(300))
    purge = confirm(mona, preview(mona, everything(channel)))
    early_us: list[int] = []

    def stamp(quarantined: Mapping[Step, QuarantinedStep]) -> list[Step]:
        early_us.extend(on_disk_at_us(step) - postgres_now_us() for step in quarantined)
        return stamp_steps(quarantined)

    monkeypatch.setattr(worker, "stamp_steps", stamp)
    assert run_to_end(purge).state == PurgeState.DONE
    assert len(early_us) == 1
    assert early_us[0] <= 0


def test_a_worker_that_lost_its_step_does_not_delete_messages_edited_since_the_read(
    mona: User, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = old_ids(300)
    write(channel, ids)
    step = claim(confirm(mona, preview(mona, everything(channel))))
    kept = quarantine_step(step, pace=Pace(10_000))
    back = Message(channel_id=channel.id, message_id=ids[7], author_id=VICTOR, content="hello")
    messages.insert_message(back, stamp_us=wall_clock_us())
    stamp_step(step, kept)
    read = quarantine.quarantine_rows

    def read_and_lose_the_step(*args: object, **named: object) -> object:
        found = read(*args, **named)  # type: ignore[arg-type]
        Step.objects.filter(purge_id=step.purge_id).update(token=uuid.uuid4())
        return found

    monkeypatch.setattr(verification, "quarantine_rows", read_and_lose_the_step)
    with pytest.raises(StepLost):
        finish_step(step, pace=Pace(10_000), quarantined=kept)
    assert ids_of(channel, step.bucket) == [ids[7]]
