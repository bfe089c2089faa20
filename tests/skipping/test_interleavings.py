"""Thousands of interleavings in a model whose decisions are the product's own: nothing that lives is skipped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from chatstore.domain.buckets import LATE_AFTER_MS
from chatstore.domain.live import NOTHING, Live, live_from_read
from chatstore.domain.snowflakes import first_id_at, ms_of
from chatstore.domain.whole_reads import WholeRead
from tests.examples import IS_THOROUGH
from tests.skipping.machine import Interleavings
from tests.skipping.world import Rules

STATEMENTS = 60
EXAMPLES = 400 if IS_THOROUGH else 100


@pytest.mark.unit
# As the plugin would mark it, had it no machine: the slow tier tries it with all its examples.
@pytest.mark.hypothesis
def test_what_the_reader_skips_never_hides_a_live_message() -> None:
    class Machine(Interleavings):
        seen: ClassVar[Counter[str]] = Counter()

    wanted = settings(max_examples=EXAMPLES, stateful_step_count=STATEMENTS, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Machine, settings=wanted)
    # Where nothing was ever skipped, nothing was shown.
    assert Machine.seen["statements"] > 20 * EXAMPLES
    for state in ("nothing lives here", "sealed and known", "open and begun", "living"):
        assert Machine.seen[state] > EXAMPLES / 2, state


def as_if_sealed(read: WholeRead, bucket: int) -> Live:
    return NOTHING if read.lowest is None else Live(read.lowest, read.highest, read.count)


def from_the_newest_post_on(read: WholeRead, bucket: int) -> Live:
    right = read.live(bucket)
    if right.is_known:
        return right
    now = first_id_at(read.began_us // 1_000)
    return live_from_read(read.lowest, read.highest, read.count, sealed=False, settled_before=now)


def late_twenty_minutes_later(message_id: int, *, now_ms: int) -> bool:
    return ms_of(message_id) < now_ms - LATE_AFTER_MS - 20 * 60_000


MUTANTS = {
    "what a read allows to say is stamped when it began": replace(
        Rules(), stamp_of_live=lambda *, read_began_us, skew_seconds: read_began_us
    ),
    "nothing is cleared before a late write": replace(Rules(), clears_before=False),
    "nothing is cleared after a late write": replace(Rules(), clears_after=False),
    "nothing is cleared": replace(Rules(), clears_before=False, clears_after=False),
    "a post is late only when its bucket may be sealed": replace(Rules(), is_late=late_twenty_minutes_later),
    "nobody asks again whether he has come too late": replace(Rules(), asks_again=False),
    "an open bucket is told of like a sealed one": replace(Rules(), live_of=as_if_sealed),
    "an open bucket begins at its newest post": replace(Rules(), live_of=from_the_newest_post_on),
    "the ledger's row does not come first": replace(Rules(), row_comes_first=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("rules", MUTANTS.values(), ids=MUTANTS)
def test_with_a_rule_broken_a_live_message_is_skipped(rules: Rules) -> None:
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
