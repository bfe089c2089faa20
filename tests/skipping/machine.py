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
from chatstore.domain.snowflakes import first_id_at
from tests.skipping import acts
from tests.skipping.acts import Act
from tests.skipping.world import BUCKETS, Rules, World, Write, end_of

SECOND = 1_000_000
MINUTE = 60 * SECOND

PASSES = st.sampled_from([1, 1_000, SECOND, 3 * SECOND, 6 * SECOND, 11 * SECOND, MINUTE, 9 * MINUTE, 31 * MINUTE])
"""µs between two statements: within every limit of the design, and beyond each."""

SHORT_PASSES = st.sampled_from([0, 0, 0, 3 * SECOND, 6 * SECOND, 11 * SECOND, 31 * MINUTE])

AGES = st.sampled_from([0, 1, 30 * 60, 49 * 60, 51 * 60, 59 * 60, 61 * 60, 3 * 3_600, 12 * 86_400, 13 * 86_400])
"""Age (s) of a post's id by the clock of its process."""

SKEWS = st.sampled_from([-5 * SECOND, 0, 5 * SECOND])
"""Clock skews with which a process may still write."""

WHICH = st.integers(0, 63)
SOME = st.lists(st.booleans(), min_size=6, max_size=6)


@dataclass(eq=False)
class Going:
    """An action in progress. is_killable: its process may die, and no other one continues it."""

    act: Act
    write: Write
    is_mortal: bool = False
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
        self.world = World(self.in_force, now_us=(end_of(BUCKETS[1]) + 20 * 60_000) * 1_000)
        self.going: list[Going] = []
        self.purged: list[Purged] = []

    # --- starting actions

    @rule(age=AGES, skew=SKEWS, at_once=st.booleans())
    def somebody_posts(self, age: int, skew: int, at_once: bool) -> None:
        message_id = first_id_at(self.world.wall_ms(skew) - age * 1_000)
        self._post(message_id, skew, at_once)

    @precondition(lambda self: self.world.rows)
    @rule(which=WHICH, skew=SKEWS)
    def somebody_posts_again(self, which: int, skew: int) -> None:
        """Post the same id again: the gateway got an error, or the id is an old one."""
        known = sorted(self.world.rows)
        self._post(known[which % len(known)], skew, at_once=False)

    def _post(self, message_id: int, skew: int, at_once: bool) -> None:
        if bucket_of(message_id) in BUCKETS and message_id not in self.world.withdrawn:
            write = Write()
            going = self._begin(acts.post(self.world, write, message_id, skew), write, is_mortal=True)
            if at_once:
                self._advance(going, 99)

    @precondition(lambda self: self.world.living())
    @rule(which=WHICH, skew=SKEWS, at_once=st.booleans())
    def somebody_withdraws(self, which: int, skew: int, at_once: bool) -> None:
        living = self.world.living()
        going = self._begin(acts.withdraw(self.world, living[which % len(living)], skew), Write(), is_mortal=True)
        if at_once:
            self._advance(going, 99)

    @precondition(lambda self: self.world.living())
    @rule(which=WHICH, some=SOME, budget=st.sampled_from([2, 4, 500]))
    def a_purge_begins(self, which: int, some: list[bool], budget: int) -> None:
        living = self.world.living()
        bucket = bucket_of(living[which % len(living)])
        there = self.world.living(bucket)
        chosen = [one for number, one in enumerate(there) if some[number % len(some)]] or there
        self._purge(bucket, chosen, budget=budget, standing=0)

    @precondition(lambda self: any(purged.kept for purged in self.purged))
    @rule(which=WHICH)
    def a_rewrite_begins(self, which: int) -> None:
        """Rewrite the bucket of a purge: its ids are deleted, and live messages between them are rewritten."""
        found = [purged for purged in self.purged if purged.kept]
        purged = found[which % len(found)]
        gone = [one for one in purged.kept if not self.world.lives(one)]
        if gone:
            self._purge(purged.bucket, gone, budget=2, standing=0)

    def _purge(self, bucket: int, ids: list[int], *, budget: int, standing: int) -> None:
        purged = Purged(bucket)
        act = acts.purge(self.world, purged.kept, ids, bucket, budget=budget, standing=standing)
        self._begin(act, Write(), then=lambda: self.purged.append(purged))

    @precondition(lambda self: self.purged)
    @rule(which=WHICH)
    def an_undo_begins(self, which: int) -> None:
        purged = self.purged.pop(which % len(self.purged))
        elsewhere = {one for other in self.purged for one in other.kept}
        write = Write()
        self._begin(acts.undo(self.world, write, purged.kept, elsewhere, purged.bucket), write)

    @rule(bucket=st.sampled_from(BUCKETS), ages=st.sets(st.integers(1, 20), min_size=1, max_size=3), skew=SKEWS)
    def an_import_begins(self, bucket: int, ages: set[int], skew: int) -> None:
        newest = min(end_of(bucket) - 1, self.world.now_us // 1_000)
        ids = [first_id_at(newest - age * 13 * 60_000) for age in ages]
        write = Write()
        ids = [one for one in ids if bucket_of(one) == bucket]
        act = acts.load(self.world, write, ids, bucket, skew, settles=bool(len(ages) % 2))
        self._begin(act, write, is_mortal=True)

    @rule(bucket=st.sampled_from(BUCKETS), minds_lock=st.booleans(), steps=st.integers(1, 9))
    def a_look_begins(self, bucket: int, minds_lock: bool, steps: int) -> None:
        act = acts.look(self.world, bucket, minds_lock=minds_lock)
        self._advance(self._begin(act, Write(), is_mortal=True), steps)

    @rule(
        age=AGES,
        skew=SKEWS,
        order=st.lists(st.tuples(st.booleans(), SHORT_PASSES), min_size=12, max_size=12),
        minds_lock=st.booleans(),
    )
    def a_look_falls_into_a_post(self, age: int, skew: int, order: list[tuple[bool, int]], minds_lock: bool) -> None:
        """Interleave the two statement by statement in any order, since their overlap decides."""
        message_id = first_id_at(self.world.wall_ms(skew) - age * 1_000)
        write = Write()
        post = self._begin(acts.post(self.world, write, message_id, skew), write, is_mortal=True)
        look_act = acts.look(self.world, bucket_of(message_id), minds_lock=minds_lock)
        look = self._begin(look_act, Write(), is_mortal=True)
        for is_post, pass_us in order:
            self._advance(post if is_post else look, 1)
            self.world.now_us += pass_us
        self._advance(post, 9)
        self._advance(look, 9)

    @rule(age=AGES, skew=SKEWS, after=st.integers(1, 5), pass_us=st.sampled_from([0, 11 * SECOND, 31 * MINUTE]))
    def a_whole_look_falls_into_a_post(self, age: int, skew: int, after: int, pass_us: int) -> None:
        """Let the posting process pause between two of its statements."""
        message_id = first_id_at(self.world.wall_ms(skew) - age * 1_000)
        write = Write()
        post = self._begin(acts.post(self.world, write, message_id, skew), write, is_mortal=True)
        self._advance(post, after)
        self.world.now_us += pass_us
        look = acts.look(self.world, bucket_of(message_id), minds_lock=False)
        self._advance(self._begin(look, Write(), is_mortal=True), 9)
        self._advance(post, 9)

    def _begin(
        self, act: Act, write: Write, *, is_mortal: bool = False, then: Callable[[], None] = lambda: None
    ) -> Going:
        going = Going(act, write, is_mortal, then)
        self.world.under_way.append(write)
        self.going.append(going)
        return going

    # --- continuing actions

    @rule(pass_us=PASSES)
    def time_passes(self, pass_us: int) -> None:
        self.world.now_us += pass_us

    @precondition(lambda self: self.going)
    @rule(which=WHICH, steps=st.integers(1, 3), pass_us=PASSES)
    def somebody_goes_on(self, which: int, steps: int, pass_us: int) -> None:
        self.world.now_us += pass_us
        self._advance(self.going[which % len(self.going)], steps)

    @precondition(lambda self: self.going)
    @rule(which=WHICH)
    def somebody_comes_to_his_end(self, which: int) -> None:
        going = self.going[which % len(self.going)]
        for _ in range(6):
            self._advance(going, 9)
            self.world.now_us += 4 * SECOND

    @precondition(lambda self: any(going.is_mortal for going in self.going))
    @rule(which=WHICH)
    def somebody_is_killed(self, which: int) -> None:
        mortal = [going for going in self.going if going.is_mortal]
        self._end(mortal[which % len(mortal)])

    @precondition(lambda self: self.world.sent)
    @rule(which=WHICH)
    def a_statement_arrives_again(self, which: int) -> None:
        """Resend a statement from a paused worker that does not know that another one continued."""
        self.world.sent[which % len(self.world.sent)]()
        self._check()

    def _advance(self, going: Going, steps: int) -> None:
        for _ in range(steps):
            if going not in self.going:
                return
            try:
                next(going.act)
            except StopIteration:
                going.then()
                self._end(going)
            self._check()

    def _end(self, going: Going) -> None:
        self.going.remove(going)
        self.world.under_way.remove(going.write)

    # --- invariants

    def _check(self) -> None:
        hidden = self.world.hidden()
        assert not hidden, f"{len(hidden)} of {len(self.world.living())} live messages would be skipped"
        lives = [Live.from_tuple(live) for live, _ in self.world.ledger.values()]
        self.seen["statements"] += 1
        self.seen["known to be empty"] += any(live.is_nothing for live in lives)
        self.seen["sealed with bounds"] += any(live.is_known and not live.is_nothing for live in lives)
        self.seen["open with lower bound"] += any(live.first is not None and not live.is_known for live in lives)
        self.seen["live messages"] += bool(self.world.rows)
