"""A worker paused past its lease at any state change of a step, which resumes when everything is over.

Other workers finish the step meanwhile, and an undo restores everything (or a new purge deletes what an undo restored).
Whatever the paused worker sends afterwards has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User

from chatstore.store import scans
from chatstore.store.reading.reader import read_page
from moderation.domain.planner import Way
from moderation.domain.states import PurgeState, StepState
from moderation.models import AuditEntry, Undo
from moderation.operations.undo.requests import UndoPart, ask_undo
from tests.moderation.faults.real_workers.arrows import find_blocked, let_go, stop_at
from tests.moderation.faults.real_workers.asleep import sleeper_started
from tests.moderation.faults.real_workers.doomed import (
    Doomed,
    assert_done_exactly,
    assert_undone_exactly,
    preview_again,
    preview_doomed,
)
from tests.moderation.faults.real_workers.workers import Workers
from tests.moderation.rooms import buckets_of, confirm
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

WAYS = (Way.ROWS, Way.RANGES, Way.DROP, Way.REWRITE)

EARLY = (StepState.QUARANTINING, StepState.QUARANTINED, StepState.STAMPED, StepState.REWRITTEN)
LATE = (StepState.DELETED, StepState.VERIFIED, StepState.CLOSED, StepState.COUNTED)

Rows = dict[int, tuple[object, ...]]


@dataclass(slots=True)
class Stopped:
    """A purge or an undo that is paused at a breakpoint.

    stored: paused after the commit of the change, before the next statement; otherwise inside its open transaction.
    reversed_before_resume: the result is reversed before the worker resumes.
    """

    doomed: Doomed
    arrow: StepState
    stored: bool
    turned: bool
    rows: Rows
    undo: Undo | None = None
    again: Doomed | None = None

    @property
    def stands_for(self) -> Doomed:
        """The purge that was requested last."""
        return self.again or self.doomed


@pytest.mark.alone
@pytest.mark.parametrize("arrows", [EARLY, LATE], ids=["up to rewritten", "from deleted on"])
def test_a_worker_that_sleeps_at_an_arrow_past_its_lease_changes_nothing_when_it_wakes_up(
    mona: User, workers: Workers, arrows: tuple[StepState, ...]
) -> None:
    with sleeper_started() as sleeper:
        undos = [stop for index, arrow in enumerate(arrows) for stop in arrange_undos(mona, arrow, index)]
        purges = [stop for index, arrow in enumerate(arrows) for stop in arrange_purges(mona, arrow, index)]
        every = [*undos, *purges]
        wait_for_all(undos)
        with workers.hushed():
            for stop in every:
                stop_at(stop.doomed.purge.id, stop.arrow, stored=stop.stored)
            for stop in purges:
                confirm(mona, stop.doomed.purge)
            for stop in undos:
                stop.undo = ask_undo(stop.doomed.purge.id, moderator=mona, part=UndoPart())
            sleeper.begin([stop.doomed.purge.id for stop in every])
            wait_until(lambda: all(find_blocked(stop.doomed.purge) for stop in every))
            sleeper.fall_asleep()
            for stop in every:
                let_go(stop.doomed.purge)
        wait_for_all(every)
        for stop in every:
            turn_round(mona, stop)
        wait_for_all(every)
        ends = sleeper.wake_up()
    for stop in every:
        assert ends[stop.doomed.purge.id] == ("undone" if stop.undo else "done") if stop.stored else "OperationalError"
        assert_as_left(stop)


def arrange_purges(moderator: User, arrow: StepState, index: int) -> list[Stopped]:
    """Return one purge per strategy, paused after the commit and undone before the worker resumes.

    Also return one that is not undone, and one that is paused inside its transaction.
    """
    return [
        *(arrange(moderator, way, arrow, stored=True, turned=True) for way in WAYS),
        arrange(moderator, WAYS[index - 2], arrow, stored=True, turned=False),
        arrange(moderator, WAYS[index], arrow, stored=False, turned=index % 2 == 0),
    ]


def arrange_undos(moderator: User, arrow: StepState, index: int) -> list[Stopped]:
    """Return finished purges whose undo is paused: one after the commit of the change, one inside its transaction."""
    stops = [
        arrange(moderator, WAYS[index], arrow, stored=True, turned=True),
        arrange(moderator, WAYS[index - 1], arrow, stored=False, turned=index % 2 == 1),
    ]
    for stop in stops:
        confirm(moderator, stop.doomed.purge)
    return stops


def arrange(moderator: User, way: Way, arrow: StepState, *, stored: bool, turned: bool) -> Stopped:
    doomed = preview_doomed(moderator, way)
    return Stopped(doomed, arrow, stored, turned, rows_of(doomed))


def turn_round(moderator: User, stop: Stopped) -> None:
    """Undo the purge, or purge again after an undo."""
    if not stop.turned:
        return
    if stop.undo is None:
        stop.undo = ask_undo(stop.doomed.purge.id, moderator=moderator, part=UndoPart())
    else:
        stop.again = preview_again(moderator, stop.doomed)
        confirm(moderator, stop.again.purge)


def wait_for_all(stops: list[Stopped]) -> None:
    wait_until(lambda: all(stop.stands_for.is_finished() for stop in stops))


def assert_as_left(stop: Stopped) -> None:
    """Check that live rows have all their columns, pages show them, and every action was counted once."""
    doomed, undo = stop.doomed, stop.undo
    acts = AuditEntry.objects.filter(purge=doomed.purge, act="step_counted")
    assert acts.count() == 1
    if undo is None:
        assert_done_exactly(doomed)
    elif stop.again is None:
        assert_undone_exactly(doomed, undo)
    else:
        assert_done_exactly(stop.again)
        doomed.purge.refresh_from_db()
        assert doomed.purge.state == PurgeState.UNDONE
    living = doomed.staying if undo is None or stop.again else [*doomed.going, *doomed.staying]
    assert rows_of(doomed) == {message_id: stop.rows[message_id] for message_id in living}
    page = read_page(doomed.channel.id)
    assert [message.message_id for message in page.messages] == sorted(living)[: -len(page.messages) - 1 : -1]
    assert len(page.messages) == min(50, len(living))


def rows_of(doomed: Doomed) -> Rows:
    """Return all rows of the channel with all their columns."""
    return {
        row[0]: row
        for bucket in buckets_of([*doomed.going, *doomed.staying])
        for page in scans.read_whole_rows(doomed.channel.id, bucket)
        for row in page
    }
