"""A state machine that interleaves the statements of users and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from chatstore.domain.buckets import bucket_of
from chatstore.domain.live import Live
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import first_id_at
from tests.ledger_model import actions
from tests.ledger_model.actions import Action
from tests.ledger_model.model import BUCKETS, ChannelModel, Rules, Write, end_of

SECOND = 1_000_000
MINUTE = 60 * SECOND

ADVANCES = st.sampled_from([1, 1_000, SECOND, 3 * SECOND, 6 * SECOND, 11 * SECOND, MINUTE, 9 * MINUTE, 31 * MINUTE])
"""µs between two statements: within every limit of the design, and beyond each."""

SHORT_ADVANCES = st.sampled_from([0, 0, 0, 3 * SECOND, 6 * SECOND, 11 * SECOND, 31 * MINUTE])

AGES = st.sampled_from([0, 1, 30 * 60, 49 * 60, 51 * 60, 59 * 60, 61 * 60, 3 * 3_600, 12 * 86_400, 13 * 86_400])
"""Age (s) of a post's id by the clock of its process."""

SKEWS = st.sampled_from([-5 * SECOND, 0, 5 * SECOND])
"""Clock skews with which a process may still write."""

WHICH = st.integers(0, 63)
SOME = st.lists(st.booleans(), min_size=6, max_size=6)


@dataclass(eq=False)
class RunningAction:
    """An action in progress. is_killable: its process may die, and no other one continues it."""

    action: Action
    write: Write
    is_killable: bool = False
    then: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Purged:
    """A counted purge. kept: id and write timestamp of the messages it deleted and still accounts for."""

    bucket: int
    kept: dict[int, int] = field(default_factory=dict)


class Interleavings(RuleBasedStateMachine):
    in_force: ClassVar[Rules] = Rules()
    seen: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.model = ChannelModel(self.in_force, now_us=(end_of(BUCKETS[1]) + 20 * MINUTE_MS) * 1_000)
        self.running: list[RunningAction] = []
        self.purged: list[Purged] = []

    # --- starting actions

    @rule(age=AGES, skew=SKEWS, at_once=st.booleans())
    def post_message_now(self, age: int, skew: int, at_once: bool) -> None:
        message_id = first_id_at(self.model.wall_ms(skew) - age * 1_000)
        self._post(message_id, skew, at_once)

    @precondition(lambda self: self.model.rows)
    @rule(which=WHICH, skew=SKEWS)
    def repeat_post(self, which: int, skew: int) -> None:
        """Post the same id again: the gateway got an error, or the id is an old one."""
        known = sorted(self.model.rows)
        self._post(known[which % len(known)], skew, at_once=False)

    def _post(self, message_id: int, skew: int, at_once: bool) -> None:
        if bucket_of(message_id) in BUCKETS and message_id not in self.model.withdrawn:
            write = Write()
            running = self._begin(actions.post(self.model, write, message_id, skew), write, is_killable=True)
            if at_once:
                self._advance(running, 99)

    @precondition(lambda self: self.model.living())
    @rule(which=WHICH, skew=SKEWS, at_once=st.booleans())
    def withdraw_message_now(self, which: int, skew: int, at_once: bool) -> None:
        living = self.model.living()
        running = self._begin(
            actions.withdraw(self.model, living[which % len(living)], skew), Write(), is_killable=True
        )
        if at_once:
            self._advance(running, 99)

    @precondition(lambda self: self.model.living())
    @rule(which=WHICH, some=SOME, budget=st.sampled_from([2, 4, 500]))
    def start_purge(self, which: int, some: list[bool], budget: int) -> None:
        living = self.model.living()
        bucket = bucket_of(living[which % len(living)])
        there = self.model.living(bucket)
        chosen = [one for number, one in enumerate(there) if some[number % len(some)]] or there
        self._purge(bucket, chosen, budget=budget, existing_tombstones=0)

    @precondition(lambda self: any(purged.kept for purged in self.purged))
    @rule(which=WHICH)
    def start_rewrite(self, which: int) -> None:
        """Rewrite the bucket of a purge: its ids are deleted, and live messages between them are rewritten."""
        found = [purged for purged in self.purged if purged.kept]
        purged = found[which % len(found)]
        gone = [one for one in purged.kept if not self.model.lives(one)]
        if gone:
            self._purge(purged.bucket, gone, budget=2, existing_tombstones=0)

    def _purge(self, bucket: int, ids: list[int], *, budget: int, existing_tombstones: int) -> None:
        purged = Purged(bucket)
        action = actions.purge(
            self.model, purged.kept, ids, bucket, budget=budget, existing_tombstones=existing_tombstones
        )
        self._begin(action, Write(), then=lambda: self.purged.append(purged))

    @precondition(lambda self: self.purged)
    @rule(which=WHICH)
    def start_undo(self, which: int) -> None:
        purged = self.purged.pop(which % len(self.purged))
        elsewhere = {one for other in self.purged for one in other.kept}
        write = Write()
        self._begin(actions.undo(self.model, write, purged.kept, elsewhere, purged.bucket), write)

    @rule(bucket=st.sampled_from(BUCKETS), ages=st.sets(st.integers(1, 20), min_size=1, max_size=3), skew=SKEWS)
    def start_import(self, bucket: int, ages: set[int], skew: int) -> None:
        newest = min(end_of(bucket) - 1, self.model.now_us // 1_000)
        ids = [first_id_at(newest - age * 13 * MINUTE_MS) for age in ages]
        write = Write()
        ids = [one for one in ids if bucket_of(one) == bucket]
        action = actions.load(self.model, write, ids, bucket, skew, reconciles=bool(len(ages) % 2))
        self._begin(action, write, is_killable=True)

    @rule(bucket=st.sampled_from(BUCKETS), renews=st.booleans(), steps=st.integers(1, 9))
    def start_reconciliation(self, bucket: int, renews: bool, steps: int) -> None:
        action = actions.reconcile(self.model, bucket, renews=renews)
        self._advance(self._begin(action, Write(), is_killable=True), steps)

    @rule(
        age=AGES,
        skew=SKEWS,
        order=st.lists(st.tuples(st.booleans(), SHORT_ADVANCES), min_size=12, max_size=12),
        renews=st.booleans(),
    )
    def interleave_reconciliation_with_post(
        self, age: int, skew: int, order: list[tuple[bool, int]], renews: bool
    ) -> None:
        """Interleave the two statement by statement in any order, since their overlap decides."""
        message_id = first_id_at(self.model.wall_ms(skew) - age * 1_000)
        write = Write()
        post = self._begin(actions.post(self.model, write, message_id, skew), write, is_killable=True)
        reconciliation = actions.reconcile(self.model, bucket_of(message_id), renews=renews)
        reconciler = self._begin(reconciliation, Write(), is_killable=True)
        for is_post, pass_us in order:
            self._advance(post if is_post else reconciler, 1)
            self.model.now_us += pass_us
        self._advance(post, 9)
        self._advance(reconciler, 9)

    @rule(age=AGES, skew=SKEWS, after=st.integers(1, 5), pass_us=st.sampled_from([0, 11 * SECOND, 31 * MINUTE]))
    def reconcile_during_post(self, age: int, skew: int, after: int, pass_us: int) -> None:
        """Let the posting process pause between two of its statements."""
        message_id = first_id_at(self.model.wall_ms(skew) - age * 1_000)
        write = Write()
        post = self._begin(actions.post(self.model, write, message_id, skew), write, is_killable=True)
        self._advance(post, after)
        self.model.now_us += pass_us
        reconciler = actions.reconcile(self.model, bucket_of(message_id), renews=False)
        self._advance(self._begin(reconciler, Write(), is_killable=True), 9)
        self._advance(post, 9)

    def _begin(
        self, action: Action, write: Write, *, is_killable: bool = False, then: Callable[[], None] = lambda: None
    ) -> RunningAction:
        running = RunningAction(action, write, is_killable, then)
        self.model.in_flight.append(write)
        self.running.append(running)
        return running

    # --- continuing actions

    @rule(pass_us=ADVANCES)
    def advance_clock(self, pass_us: int) -> None:
        self.model.now_us += pass_us

    @precondition(lambda self: self.running)
    @rule(which=WHICH, steps=st.integers(1, 3), pass_us=ADVANCES)
    def continue_action(self, which: int, steps: int, pass_us: int) -> None:
        self.model.now_us += pass_us
        self._advance(self.running[which % len(self.running)], steps)

    @precondition(lambda self: self.running)
    @rule(which=WHICH)
    def finish_action(self, which: int) -> None:
        running = self.running[which % len(self.running)]
        for _ in range(6):
            self._advance(running, 9)
            self.model.now_us += 4 * SECOND

    @precondition(lambda self: any(running.is_killable for running in self.running))
    @rule(which=WHICH)
    def kill_action(self, which: int) -> None:
        mortal = [running for running in self.running if running.is_killable]
        self._end(mortal[which % len(mortal)])

    @precondition(lambda self: self.model.sent)
    @rule(which=WHICH)
    def resend_statement(self, which: int) -> None:
        """Resend a statement from a paused worker that does not know that another one continued."""
        self.model.sent[which % len(self.model.sent)]()
        self._check()

    def _advance(self, running: RunningAction, steps: int) -> None:
        for _ in range(steps):
            if running not in self.running:
                return
            try:
                next(running.action)
            except StopIteration:
                running.then()
                self._end(running)
            self._check()

    def _end(self, running: RunningAction) -> None:
        self.running.remove(running)
        self.model.in_flight.remove(running.write)

    # --- invariants

    def _check(self) -> None:
        hidden = self.model.hidden()
        assert not hidden, f"{len(hidden)} of {len(self.model.living())} live messages would be skipped"
        lives = [Live.from_tuple(live) for live, _ in self.model.ledger.values()]
        self.seen["statements"] += 1
        self.seen["known to be empty"] += any(live.is_empty for live in lives)
        self.seen["sealed with bounds"] += any(live.is_known and not live.is_empty for live in lives)
        self.seen["open with lower bound"] += any(live.first is not None and not live.is_known for live in lives)
        self.seen["live messages"] += bool(self.model.rows)
