"""A repair clock warns at 80 % of gc_grace and is critical at 100 %, counted from the first delete without a repair."""

import datetime as dt

import pytest

from chatstore.domain.repair_clocks import ClockState, RepairClock

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
DAY = 86_400


def clock(
    hours: float | None,
    *,
    gc_grace_seconds: int = 2 * DAY,
    blocks_purges_when_critical: bool = True,
    repaired: bool = True,
) -> RepairClock:
    """Return the clock of a table with a delete `hours` ago that no repair covers."""
    began_at = NOW - dt.timedelta(days=9) if repaired else None
    return RepairClock(
        table="messages",
        now=NOW,
        began_at=began_at,
        per_node={"127.0.0.1": began_at},
        counts_from=None if hours is None else NOW - dt.timedelta(hours=hours),
        gc_grace_seconds=gc_grace_seconds,
        normal_gc_grace_seconds=2 * DAY,
        blocks_purges_when_critical=blocks_purges_when_critical,
    )


@pytest.mark.parametrize(
    ("hours", "state"),
    [
        (0, ClockState.OK),
        (38.3, ClockState.OK),
        (38.4, ClockState.WARNING),
        (47.9, ClockState.WARNING),
        (48, ClockState.CRITICAL),
        (500, ClockState.CRITICAL),
    ],
)
def test_the_clock_turns_at_eighty_and_at_a_hundred_per_cent(hours: float, state: ClockState) -> None:
    assert clock(hours).state == state


def test_an_old_repair_alone_changes_no_state() -> None:
    assert clock(None).state == ClockState.OK
    assert clock(None, repaired=False).state == ClockState.OK


def test_a_raised_gc_grace_gives_time_and_is_not_reset_too_early() -> None:
    raised = clock(50, gc_grace_seconds=10 * DAY)
    assert (raised.state, raised.is_raised, raised.would_be_ok) == (ClockState.OK, True, False)
    assert clock(30, gc_grace_seconds=10 * DAY).would_be_ok


def test_a_table_that_no_purge_waits_for_is_never_critical() -> None:
    assert clock(500, blocks_purges_when_critical=False).state == ClockState.WARNING
