"""A bucket that was open at the preview and is sealed at the purge, with steps of two kinds."""

import pytest
from pytest_django import Settings

from chatstore.domain.buckets import bucket_at, bucket_ids
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import make_snowflake, ms_of
from chatstore.models.users import User
from moderation.domain.states import PurgeState, StepKind
from moderation.models import Step
from moderation.operations.preview import bucket_reads
from moderation.operations.purging import quarantine as quarantining
from moderation.operations.steps.totals import totals_of
from moderation.store import quarantine
from moderation.store.pace import Pace
from moderation.store.quarantine import QuarantineRead
from tests.chatstore.channels import delete_rows
from tests.moderation.channels import (
    WILMA,
    by_victor,
    claim,
    confirm,
    ids_of,
    make_channel,
    now_ms,
    old_ids,
    preview,
    run_to_end,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step

BUDGET = 20


def finish(step: Step) -> None:
    kept = quarantine_step(step, pace=Pace(10_000))
    stamp_step(step, kept)
    finish_step(step, pace=Pace(10_000), quarantined=kept)


def test_rows_deleted_while_a_range_step_reads_are_not_rewritten(
    mona: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PURGE_TOMBSTONE_BUDGET = BUDGET
    channel, old = make_channel(), old_ids(80)
    bucket = bucket_at(now_ms()) - 3
    sealed_ms = ms_of(bucket_ids(bucket)[1])
    recent = [make_snowflake(sealed_ms - 20 * MINUTE_MS + number * 10) for number in range(30)]
    write(channel, [*old[::2], *recent])
    write(channel, old[1::2], author=WILMA)
    others = [number + 1 for number in old[: BUDGET + 5]]
    write(channel, others, author=WILMA)
    delete_rows(channel.id, others)

    with monkeypatch.context() as earlier:
        earlier.setattr(bucket_reads, "postgres_now_us", lambda: (sealed_ms - MINUTE_MS) * 1_000)
        purge = confirm(mona, preview(mona, by_victor(channel)))
    rows, spans = claim(purge), claim(purge)
    assert (rows.kind, spans.kind) == (StepKind.ROWS, StepKind.RANGES)

    read = quarantine.quarantine_bucket

    def read_and_delete_rows(*args: object, **named: object) -> QuarantineRead:
        reading = read(*args, **named)  # type: ignore[arg-type]
        finish(rows)
        return reading

    monkeypatch.setattr(quarantining, "quarantine_bucket", read_and_delete_rows)
    finish(spans)
    done = run_to_end(purge)
    assert (done.state, totals_of(done).deleted) == (PurgeState.DONE, 70)
    assert ids_of(channel, bucket) == old[1::2]
