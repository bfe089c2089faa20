"""Thousands of interleavings in a model that uses the product's own decisions: no live message is skipped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from chatstore.domain.buckets import LATE_AFTER_MS
from chatstore.domain.live import EMPTY, Live, live_from_read
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import first_id_at, ms_of
from chatstore.domain.whole_reads import WholeRead
from tests.examples import IS_THOROUGH
from tests.ledger_model.model import Rules
from tests.ledger_model.state_machine import MINUTE, Interleavings

STATEMENTS = 60
EXAMPLES = 400 if IS_THOROUGH else 100


@pytest.mark.unit
# Hypothesis's plugin does not mark this test by itself; with the marker the slow tier runs all its examples.
@pytest.mark.hypothesis
def test_what_the_reader_skips_never_hides_a_live_message() -> None:
    class Machine(Interleavings):
        seen: ClassVar[Counter[str]] = Counter()

    wanted = settings(max_examples=EXAMPLES, stateful_step_count=STATEMENTS, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Machine, settings=wanted)
    # If nothing was ever skipped, the test would prove nothing.
    assert Machine.seen["statements"] > 20 * EXAMPLES
    for state in ("known to be empty", "sealed with bounds", "open with lower bound", "live messages"):
        assert Machine.seen[state] > EXAMPLES / 2, state


def pause_import_while_a_job_without_lock_counts(rules: Rules) -> None:
    """Let an import pause before it writes, for longer than its lease, while another job counts the bucket."""

    class Machine(Interleavings):
        in_force = rules

    machine = Machine()
    machine.advance_clock(60 * MINUTE)
    machine.start_import(bucket=0, ages={3, 4}, skew=0)
    machine.continue_action(which=0, steps=3, pass_us=1)
    machine.advance_clock(31 * MINUTE)
    machine.start_reconciliation(bucket=0, renews=False, steps=99)
    machine.finish_action(which=0)


@pytest.mark.unit
def test_a_job_without_lock_does_not_hide_what_a_paused_import_writes() -> None:
    pause_import_while_a_job_without_lock_counts(Rules())
    with pytest.raises(AssertionError, match="would be skipped"):
        pause_import_while_a_job_without_lock_counts(replace(Rules(), checks_lock=False))


def as_if_sealed(read: WholeRead, bucket: int) -> Live:
    return EMPTY if read.lowest is None else Live(read.lowest, read.highest, read.count)


def from_the_newest_post_on(read: WholeRead, bucket: int) -> Live:
    right = read.live(bucket)
    if right.is_known:
        return right
    now = first_id_at(read.began_us // 1_000)
    return live_from_read(read.lowest, read.highest, read.count, sealed=False, settled_before=now)


def late_twenty_minutes_later(message_id: int, *, now_ms: int) -> bool:
    return ms_of(message_id) < now_ms - LATE_AFTER_MS - 20 * MINUTE_MS


MUTANTS = {
    "the result of a read is stamped with its start": replace(
        Rules(), stamp_of_live=lambda *, read_began_us, skew_seconds: read_began_us
    ),
    "nothing is cleared before a late write": replace(Rules(), clears_before=False),
    "nothing is cleared after a late write": replace(Rules(), clears_after=False),
    "nothing is cleared": replace(Rules(), clears_before=False, clears_after=False),
    "a post is late only when its bucket may be sealed": replace(Rules(), is_late=late_twenty_minutes_later),
    "lateness is not checked again after a write": replace(Rules(), rechecks_lateness=False),
    "an open bucket is recorded like a sealed one": replace(Rules(), live_of=as_if_sealed),
    "the lower bound of an open bucket is its newest post": replace(Rules(), live_of=from_the_newest_post_on),
    "the ledger row is not written first": replace(Rules(), row_comes_first=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("rules", MUTANTS.values(), ids=MUTANTS)
def test_with_a_broken_rule_a_live_message_is_skipped(rules: Rules) -> None:
    broken = rules

    class Machine(Interleavings):
        in_force = broken

    wanted = settings(
        max_examples=20 * EXAMPLES,
        stateful_step_count=STATEMENTS,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        derandomize=True,
        database=None,
    )
    with pytest.raises(AssertionError, match="would be skipped"):
        run_state_machine_as_test(Machine, settings=wanted)
