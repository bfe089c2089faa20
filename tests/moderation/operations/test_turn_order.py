"""A free worker processes the purges that wait in a fixed order."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections import Counter
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation import tasks
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access.audit import save_with_next_id
from moderation.operations.purging import turns
from moderation.operations.purging.scheduling import joinable_purges, reserve_wakeup
from moderation.operations.purging.turns import (
    PRECEDENCE,
    SMALL,
    SMALL_MESSAGES,
    TurnWait,
    join_turn,
    take_scan_turn,
    take_turn,
    wait_for_turn,
)
from tests.moderation.channels import (
    claim,
    confirm,
    everything,
    make_channel,
    old_ids,
    preview,
    run_to_end,
    write,
)
from tests.moderation.scattered import make_scattered

FIRST, LAST = 0.0, 0.999

SELECTION = Selection(where=Author((404,))).as_json()
"""Of the purges that only wait, and have no steps."""


@pytest.fixture(autouse=True)
def _purges_without_steps_are_deleted(only_own_purges_wait: None) -> Iterator[None]:
    yield
    Purge.objects.filter(selection=SELECTION).delete()


@pytest.fixture
def jamal() -> User:
    """Another moderator."""
    return User.objects.create_user(f"jamal-{uuid.uuid4().hex[:8]}")


def waiting(
    moderator: User,
    *,
    guild: int = 0,
    messages: int = SMALL_MESSAGES + 1,
    state: PurgeState = PurgeState.QUEUED,
    is_rewrite: bool = False,
) -> int:
    """Create a purge that waits for its turn; return its id."""
    purge = Purge(
        state=state, selection=SELECTION, moderator=moderator, guild_id=guild, manifest=messages, is_rewrite=is_rewrite
    )
    save_with_next_id(purge)
    wait_again(purge.pk)
    return purge.pk


def wait_again(purge_id: int) -> None:
    expires_at = ClockTimestamp() + dt.timedelta(seconds=60)
    Purge.objects.filter(pk=purge_id).schedule(wakeup_expires_at=expires_at)


def take_first() -> int | None:
    return take_turn(draw=lambda: FIRST)


def new_guild() -> int:
    return random.getrandbits(60)


def test_guilds_take_turns_however_many_purges_one_of_them_has(mona: User, jamal: User) -> None:
    busy, other = new_guild(), new_guild()
    of_busy = [waiting(moderator, guild=busy) for moderator in (mona, mona, jamal)]
    of_other = [waiting(mona, guild=other), waiting(mona, guild=other)]
    order = [take_first() for _ in range(5)]
    assert [purge_id in of_busy for purge_id in order] == [True, False, True, False, True]
    assert set(order) == {*of_busy, *of_other}
    assert take_first() is None


def test_the_moderators_of_a_guild_take_turns(mona: User, jamal: User) -> None:
    guild = new_guild()
    of_mona = [waiting(mona, guild=guild) for _ in range(3)]
    of_jamal = waiting(jamal, guild=guild)
    assert [take_first() for _ in range(4)] == [of_mona[0], of_jamal, *of_mona[1:]]


def test_the_purges_of_a_moderator_take_turns(mona: User) -> None:
    guild = new_guild()
    first, second = waiting(mona, guild=guild), waiting(mona, guild=guild)
    order = []
    for _ in range(4):
        purge_id = take_first()
        assert purge_id is not None
        order.append(purge_id)
        wait_again(purge_id)
    assert order == [first, second, first, second]


def test_small_purges_come_first_then_undos_then_others_and_rewrites_last(mona: User) -> None:
    rewrite = waiting(mona, messages=0, is_rewrite=True)
    large = waiting(mona)
    undo = waiting(mona, state=PurgeState.UNDOING)
    small = waiting(mona, messages=SMALL_MESSAGES)
    assert [take_first() for _ in range(4)] == [small, undo, large, rewrite]


def test_no_kind_of_work_starves(mona: User) -> None:
    kinds = {
        waiting(mona, messages=1): "small",
        waiting(mona, state=PurgeState.UNDOING): "undo",
        waiting(mona): "large",
        waiting(mona, messages=0, is_rewrite=True): "rewrite",
    }
    drawn = random.Random(7)
    had_turns: Counter[str] = Counter()
    for _ in range(240):
        purge_id = take_turn(draw=drawn.random)
        assert purge_id is not None
        had_turns[kinds[purge_id]] += 1
        wait_again(purge_id)
    assert abs(had_turns["small"] / 240 - PRECEDENCE) < 0.05
    assert min(had_turns[kind] for kind in ("undo", "large", "rewrite")) >= 4


def test_the_rest_of_the_turns_goes_to_the_others_alike(mona: User) -> None:
    undo = waiting(mona, state=PurgeState.UNDOING)
    rewrite = waiting(mona, messages=0, is_rewrite=True)
    waiting(mona, messages=1)
    assert take_turn(draw=lambda: PRECEDENCE + 0.001) == undo
    wait_again(undo)
    assert take_turn(draw=lambda: LAST) == rewrite


def test_a_turn_is_given_to_one_worker(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = waiting(mona), waiting(mona)
    receive = turns._receive
    taken_by_another: list[int] = []

    def be_late(purge_id: int) -> bool:
        if not taken_by_another:
            taken_by_another.append(purge_id)
            assert receive(purge_id)
        return receive(purge_id)

    monkeypatch.setattr(turns, "_receive", be_late)
    assert take_first() == second
    assert taken_by_another == [first]


def test_scans_are_chosen_among_scans_only(mona: User) -> None:
    purge, scan = waiting(mona), waiting(mona, messages=0, state=PurgeState.SCANNING)
    assert take_scan_turn() == scan
    assert take_scan_turn() is None
    assert take_first() == purge


def test_a_purge_that_waits_knows_how_many_come_first(mona: User, jamal: User) -> None:
    busy, other = new_guild(), new_guild()
    waits = [
        waiting(mona, guild=busy),
        waiting(mona, guild=busy),
        waiting(jamal, guild=busy),
        waiting(mona, guild=other),
        waiting(mona, messages=1),
        waiting(mona, messages=0, is_rewrite=True),
        waiting(mona, state=PurgeState.UNDOING),
    ]
    # They are not counted among the purges.
    scans = [waiting(mona, guild=busy, messages=0, state=PurgeState.SCANNING) for _ in range(2)]
    while waits:
        found = [turn_of(purge_id) for purge_id in waits]
        assert sorted(turn.first for turn in found if turn.first is not None) == list(range(len(waits)))
        assert {turn.others for turn in found} == {len(waits) - 1}
        comes_next = next(purge_id for purge_id, turn in zip(waits, found, strict=True) if turn.first == 0)
        assert take_first() == comes_next
        waits.remove(comes_next)
        assert wait_for_turn(Purge.objects.get(pk=comes_next), postgres_now()) is None
    assert [turn_of(scan).first for scan in scans] == [0, 1]


def turn_of(purge_id: int) -> TurnWait:
    turn = wait_for_turn(Purge.objects.get(pk=purge_id), postgres_now())
    assert turn is not None
    return turn


def test_it_is_found_in_one_statement(mona: User) -> None:
    purge = Purge.objects.get(pk=[waiting(mona) for _ in range(5)][-1])
    now = postgres_now()
    with CaptureQueriesContext(connection) as sent:
        assert wait_for_turn(purge, now) is not None
    assert len(sent) == 1


def test_how_many_come_first_is_unknown_if_very_many_wait(mona: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 3)
    purges = [waiting(mona) for _ in range(4)]
    turn = turn_of(purges[-1])
    assert (turn.others, turn.first) == (None, None)
    assert take_first() == purges[0]
    turn = turn_of(purges[-1])
    assert (turn.others, turn.first) == (2, 2)


def test_a_turn_makes_no_new_version_of_the_purge(mona: User) -> None:
    purge = Purge.objects.get(pk=waiting(mona))
    assert take_first() == purge.pk
    assert Purge.objects.get(pk=purge.pk).version == purge.version


def test_a_small_purge_is_processed_while_another_one_waits_for_the_disk(
    mona: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.run_purge, "delay", lambda purge_id: object())
    dense, few = make_channel(), make_channel()
    write(dense, old_ids(400))
    write(few, old_ids(5))
    large, small = (confirm(mona, preview(mona, everything(channel))) for channel in (dense, few))
    assert set(large.steps.values_list("kind", flat=True)) == {"ranges"}
    assert reserve_wakeup(small.pk)
    tasks._run_turn(large.pk)
    small.refresh_from_db()
    large.refresh_from_db()
    assert (small.state, large.state) == (PurgeState.DONE, PurgeState.DONE)
    assert small.finished_at is not None
    assert large.finished_at is not None
    assert small.finished_at < large.finished_at


def test_only_small_purges_are_processed_between_the_steps_of_another_one(mona: User) -> None:
    large = waiting(mona)
    assert take_turn(ranks=(SMALL,)) is None
    assert take_first() == large


def test_workers_for_which_no_purge_waits_join_running_ones_in_turn(mona: User) -> None:
    purges = [make_scattered(mona, channels=1, buckets=3).purge for _ in range(3)]
    Purge.objects.update(wakeup_expires_at=None)
    for purge in purges:
        claim(purge)
    joined = [join_turn(draw=lambda: FIRST) for _ in range(6)]
    own = [purge_id for purge_id in joined if purge_id in [purge.pk for purge in purges]]
    assert own == [purge.pk for purge in (*purges, *purges)][: len(own)]
    for purge in purges:
        run_to_end(purge)
    assert not joinable_purges().filter(pk__in=[purge.pk for purge in purges]).exists()
