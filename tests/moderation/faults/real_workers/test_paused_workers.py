"""A worker paused past its lease at any state change of a step, which resumes when everything has completed.

Other workers finish the step meanwhile, and an undo restores everything (or a new purge deletes what an undo restored).
Whatever the paused worker sends afterwards has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chatstore.models.users import User
from chatstore.store import scans
from chatstore.store.reading.reader import read_page
from moderation.domain.planner import DeleteStrategy
from moderation.domain.states import PurgeState, StepState, UndoStepState
from moderation.models import AuditEntry, Undo
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import buckets_of, confirm
from tests.moderation.faults.real_workers.breakpoints import clear_breakpoint, find_blocked, set_breakpoint
from tests.moderation.faults.real_workers.paused_worker_process import paused_worker_started
from tests.moderation.faults.real_workers.purge_fixture import (
    PurgeFixture,
    assert_done_exactly,
    assert_undone_exactly,
    make_previewed,
    preview_once_more,
)
from tests.moderation.faults.real_workers.workers import Workers
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

STRATEGIES = (DeleteStrategy.ROWS, DeleteStrategy.RANGES, DeleteStrategy.DROP, DeleteStrategy.REWRITE)

EARLY = (StepState.QUARANTINING, StepState.QUARANTINED, StepState.STAMPED, StepState.REWRITTEN)
LATE = (StepState.DELETED, StepState.VERIFIED, StepState.CLOSED, StepState.COUNTED)
UNDO_EARLY = (UndoStepState.PLANNING, UndoStepState.STAMPED, UndoStepState.RESTORED)
UNDO_LATE = (UndoStepState.VERIFIED, UndoStepState.CLOSED, UndoStepState.COUNTED)

Rows = dict[int, tuple[object, ...]]


@dataclass(slots=True)
class PausedCase:
    """A purge or an undo that is paused at a breakpoint.

    stored: paused after the commit of the change, before the next statement; otherwise inside its open transaction.
    reversed_before_resume: the result is reversed before the worker resumes.
    """

    fixture: PurgeFixture
    breakpoint_state: StepState | UndoStepState
    stored: bool
    reversed_before_resume: bool
    rows: Rows
    undo: Undo | None = None
    again: PurgeFixture | None = None

    @property
    def latest(self) -> PurgeFixture:
        """The purge that was requested last."""
        return self.again or self.fixture


@pytest.mark.alone
@pytest.mark.parametrize(
    ("breakpoints", "undo_breakpoints"),
    [(EARLY, UNDO_EARLY), (LATE, UNDO_LATE)],
    ids=["up to rewritten or restored", "later"],
)
def test_a_worker_paused_past_its_lease_changes_nothing_when_it_resumes(
    mona: User,
    workers: Workers,
    breakpoints: tuple[StepState, ...],
    undo_breakpoints: tuple[UndoStepState, ...],
) -> None:
    with paused_worker_started() as paused_worker:
        undos = [
            case
            for index, undo_breakpoint in enumerate(undo_breakpoints)
            for case in make_paused_undos(mona, undo_breakpoint, index)
        ]
        purges = [
            case
            for index, breakpoint_state in enumerate(breakpoints)
            for case in make_paused_purges(mona, breakpoint_state, index)
        ]
        every = [*undos, *purges]
        wait_for_all(undos)
        with workers.beat_paused():
            for case in every:
                set_breakpoint(case.fixture.purge.id, case.breakpoint_state, stored=case.stored)
            for case in purges:
                confirm(mona, case.fixture.purge)
            for case in undos:
                case.undo = request_undo(
                    case.fixture.purge.id, moderator=mona, part=UndoPart(), reason="Appeal accepted"
                )
            paused_worker.begin([case.fixture.purge.id for case in every])
            wait_until(lambda: all(find_blocked(case.fixture.purge) for case in every))
            paused_worker.pause()
            for case in every:
                clear_breakpoint(case.fixture.purge)
        wait_for_all(every)
        for case in every:
            reverse(mona, case)
        wait_for_all(every)
        ends = paused_worker.resume()
    for case in every:
        end = "undone" if case.undo else "done"
        assert ends[case.fixture.purge.id] == (end if case.stored else "OperationalError"), case
        assert_final_state(case)


def make_paused_purges(moderator: User, breakpoint_state: StepState, index: int) -> list[PausedCase]:
    """Return one purge per strategy, paused after the commit and undone before the worker resumes.

    Also return one that is not undone, and one that is paused inside its transaction.
    """
    return [
        *(
            make_paused_case(moderator, strategy, breakpoint_state, stored=True, reversed_before_resume=True)
            for strategy in STRATEGIES
        ),
        make_paused_case(moderator, STRATEGIES[index - 2], breakpoint_state, stored=True, reversed_before_resume=False),
        make_paused_case(
            moderator, STRATEGIES[index], breakpoint_state, stored=False, reversed_before_resume=index % 2 == 0
        ),
    ]


def make_paused_undos(moderator: User, breakpoint_state: UndoStepState, index: int) -> list[PausedCase]:
    """Return finished purges whose undo is paused: one after the commit of the change, one inside its transaction."""
    cases = [
        make_paused_case(moderator, STRATEGIES[index], breakpoint_state, stored=True, reversed_before_resume=True),
        make_paused_case(
            moderator, STRATEGIES[index - 1], breakpoint_state, stored=False, reversed_before_resume=index % 2 == 1
        ),
    ]
    for case in cases:
        confirm(moderator, case.fixture.purge)
    return cases


def make_paused_case(
    moderator: User,
    strategy: DeleteStrategy,
    breakpoint_state: StepState | UndoStepState,
    *,
    stored: bool,
    reversed_before_resume: bool,
) -> PausedCase:
    fixture = make_previewed(moderator, strategy)
    return PausedCase(fixture, breakpoint_state, stored, reversed_before_resume, rows_of(fixture))


def reverse(moderator: User, case: PausedCase) -> None:
    """Undo the purge, or purge again after an undo."""
    if not case.reversed_before_resume:
        return
    if case.undo is None:
        case.undo = request_undo(case.fixture.purge.id, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
    else:
        case.again = preview_once_more(moderator, case.fixture)
        confirm(moderator, case.again.purge)


def wait_for_all(cases: list[PausedCase]) -> None:
    wait_until(lambda: all(case.latest.is_finished() for case in cases))


def assert_final_state(case: PausedCase) -> None:
    """Check that live rows have all their columns, pages show them, and every action was counted once."""
    fixture, undo = case.fixture, case.undo
    actions = AuditEntry.objects.filter(purge=fixture.purge, action="channel_purged")
    assert [entry.details["steps"] for entry in actions] == [1]
    if undo is None:
        assert_done_exactly(fixture)
    elif case.again is None:
        assert_undone_exactly(fixture, undo)
    else:
        assert_done_exactly(case.again)
        fixture.purge.refresh_from_db()
        assert fixture.purge.state == PurgeState.UNDONE
    living = fixture.kept_ids if undo is None or case.again else [*fixture.matched_ids, *fixture.kept_ids]
    assert rows_of(fixture) == {message_id: case.rows[message_id] for message_id in living}
    page = read_page(fixture.channel.id)
    assert [message.message_id for message in page.messages] == sorted(living)[: -len(page.messages) - 1 : -1]
    assert len(page.messages) == min(50, len(living))


def rows_of(fixture: PurgeFixture) -> Rows:
    """Return all rows of the channel with all their columns."""
    return {
        row[0]: row
        for bucket in buckets_of([*fixture.matched_ids, *fixture.kept_ids])
        for page in scans.read_whole_rows(fixture.channel.id, bucket)
        for row in page
    }
