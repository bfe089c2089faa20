"""A rewritten message that is missing afterwards opens a finding, unless someone else deleted it."""

from pathlib import Path

import pytest
from django.core.management import call_command

from chatstore.domain.runs import Severity
from chatstore.models import Channel, Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now, wall_clock_us
from chatstore.operations.findings.channels import MISSING_SURVIVORS
from chatstore.operations.findings.records import acknowledge_finding
from chatstore.operations.gateway import messages as gateway
from chatstore.store import messages
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.states import PurgeState, StepState
from moderation.models import Purge, Step
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.rewrite import rewrite_survivors
from moderation.operations.steps.claiming import move_step
from moderation.store.pace import Pace
from tests.imports.exports import make_raw, write_export
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    age_timestamps,
    buckets_of,
    by_victor,
    choose,
    claim,
    confirm,
    ids_of,
    old_ids,
    preview,
    write,
)
from tests.moderation.steps import finish_step, quarantine_step, stamp_step


@pytest.fixture
def survivors(channel: Channel) -> list[int]:
    """Write Wilma's messages, every second one of 1,200, so that nearly all of them must be rewritten."""
    ids = old_ids(1_200)
    write(channel, ids[::2])
    write(channel, ids[1::2], author=WILMA)
    return ids[1::2]


def take_to_rewritten(moderator: User, channel: Channel) -> Step:
    """Return the step of a purge of Victor's messages right after all survivors were rewritten."""
    purge = confirm(moderator, preview(moderator, by_victor(channel)))
    step = claim(purge)
    kept = quarantine_step(step, pace=Pace(1_000))
    stamp_step(step, kept)
    rewrite_survivors(step, Pace(10_000), survivor_rows=kept.survivor_rows, check=lambda: None)
    move_step(step, StepState.REWRITTEN)
    return step


def finish(step: Step) -> Purge:
    finish_step(step, pace=Pace(10_000))
    return advance_purge(step.purge_id)


def lose(channel: Channel, message_id: int) -> None:
    """Delete the row without any record."""
    messages.delete_row(channel.id, message_id, stamp_us=wall_clock_us())


def findings_of(step: Step) -> list[Finding]:
    return list(Finding.objects.filter(kind=MISSING_SURVIVORS, subject__startswith=f"{step.channel_id}:{step.bucket}:"))


def test_lost_survivors_open_a_finding_that_names_them(mona: User, channel: Channel, survivors: list[int]) -> None:
    step = take_to_rewritten(mona, channel)
    lose(channel, survivors[100])
    lose(channel, survivors[200])
    assert finish(step).state == PurgeState.DONE
    (finding,) = findings_of(step)
    assert (finding.severity, finding.closed_at) == (Severity.CRITICAL, None)
    assert finding.summary.startswith("2 messages that should have been kept are missing after a purge in #room, ")
    assert finding.details["messages"] == [str(survivors[100]), str(survivors[200])]
    assert finding.details["purge"] == str(step.purge_id)


def test_an_export_brings_back_lost_survivors_and_nothing_that_was_deleted(
    mona: User, otto: User, channel: Channel, survivors: list[int], tmp_path: Path
) -> None:
    before = ids_of(channel, *buckets_of(survivors))
    step = take_to_rewritten(mona, channel)
    lose(channel, survivors[100])
    lose(channel, survivors[200])
    finish(step)
    assert len(ids_of(channel, step.bucket)) == len(survivors) - 2
    # As the advice of the finding says: all of the period, also what the purge deleted.
    raws = [make_raw(message_id, author=WILMA if message_id in survivors else VICTOR) for message_id in before]
    call_command("import_discord", write_export(tmp_path / "room.json", channel.pk, raws))
    assert ids_of(channel, step.bucket) == survivors
    (finding,) = findings_of(step)
    acknowledge_finding(finding.pk, actor=otto)
    assert not Finding.objects.open().filter(channel_id=channel.pk).exists()


def test_no_finding_is_opened_when_survivors_are_present_or_withdrawn(
    mona: User, channel: Channel, survivors: list[int]
) -> None:
    step = take_to_rewritten(mona, channel)
    assert gateway.withdraw_message(channel.id, survivors[100], actor=WILMA)
    assert finish(step).state == PurgeState.DONE
    assert findings_of(step) == []


@pytest.mark.parametrize(
    ("state", "findings"),
    [(StepState.COUNTED, 0), (StepState.DELETED, 0), (StepState.PENDING, 1), (StepState.CANCELLED, 1)],
)
def test_another_purge_explains_only_messages_it_may_have_deleted(
    mona: User, channel: Channel, survivors: list[int], state: StepState, findings: int
) -> None:
    other = preview(mona, choose(channel.id, message_ids=[survivors[100]]))
    step = take_to_rewritten(mona, channel)
    Step.objects.filter(purge_id=other.id).update(state=state)
    lose(channel, survivors[100])
    finish(step)
    assert len(findings_of(step)) == findings


def test_a_purge_that_was_undone_explains_nothing(mona: User, channel: Channel, survivors: list[int]) -> None:
    other = preview(mona, choose(channel.id, message_ids=[survivors[100], survivors[200]]))
    step = take_to_rewritten(mona, channel)
    Step.objects.filter(purge_id=other.id).update(state=StepState.COUNTED, undone_ids=pack_ids([survivors[100]]))
    lose(channel, survivors[100])
    lose(channel, survivors[200])
    finish(step)
    (finding,) = findings_of(step)
    assert finding.details["messages"] == [str(survivors[100])]


def test_a_second_loss_in_the_bucket_is_reported_beside_the_first(
    mona: User, channel: Channel, survivors: list[int]
) -> None:
    first = take_to_rewritten(mona, channel)
    lose(channel, survivors[100])
    finish(first)
    Finding.objects.filter(pk=findings_of(first)[0].pk).update(notified_at=postgres_now(), mailed_at=postgres_now())
    write(channel, [one + 1 for one in survivors])
    age_timestamps(channel)
    second = take_to_rewritten(mona, channel)
    lost = unpack_ids(Step.objects.get(purge_id=second.purge_id).survivors)[7]
    lose(channel, lost)
    finish(second)
    earlier, later = sorted(findings_of(second), key=lambda finding: finding.opened_at)
    assert (earlier.details["messages"], later.details["messages"]) == ([str(survivors[100])], [str(lost)])
    assert later.notified_at is None
    assert later.mailed_at is None
