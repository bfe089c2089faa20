"""Turns: which purge a free worker processes next, and when it leaves that purge to the next one.

A purge waits for its turn while it has a wake-up that no worker has received. A wake-up is not bound to its purge: the
worker that receives it chooses among the purges that wait then. First comes small work, then undos, then the other
purges, then rewrites; within these, turns rotate among the guilds, the moderators of a guild, and the purges of a
moderator: the one whose last turn is the oldest is next. A worker for which none waits joins a running purge, in the
same order. Scans take turns in the same way, among themselves.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.db.models import Case, F, IntegerField, OuterRef, Subquery, Value, When

from chatstore.models.functions import ClockTimestamp
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import Purge
from moderation.models.purges import PurgeQuerySet
from moderation.operations.purging.scheduling import joinable_purges, joinable_scans

TURN_SECONDS = 0.25
"""A purge is left for one that waits after this long, once what it has begun is completed."""

SMALL_MESSAGES = 1_000
"""Purges of up to this many messages are small: selections, single messages, most raids."""

MAX_WAITING = 1_000
"""Purges that wait of which a page finds out which ones come first."""

SMALL, UNDO, PURGE, REWRITE = RANKS = range(4)

PRECEDENCE = 7 / 8
"""Share of the turns that go to the first rank of those that wait. The rest go to the others, so that none starves."""


@dataclass(slots=True)
class Turn:
    """A worker's turn at a purge: at least `TURN_SECONDS`, and as long as no other one waits for a worker.

    is_between_steps: of another purge, which waits.
    """

    purge_id: int
    is_between_steps: bool = False
    has_ended: bool = False
    _checked_at: float = field(default_factory=time.monotonic)

    def ends(self) -> bool:
        """Return whether to leave the purge to the next turn."""
        if not self.has_ended and time.monotonic() - self._checked_at >= TURN_SECONDS:
            self._checked_at = time.monotonic()
            self.has_ended = self.is_between_steps or does_another_wait(self.purge_id)
        return self.has_ended


def does_another_wait(purge_id: int) -> bool:
    """Return whether another purge, or a scan, waits for its turn."""
    return _waiting().exclude(id=purge_id).exists()


class TurnWait(NamedTuple):
    """Wait of a purge or scan for its turn. others: how many other purges, or scans, wait for theirs. first: how many
    of these get theirs before it, unless they belong to the eighth of the turns that goes to later ranks. Both are None
    if more than `MAX_WAITING` wait.
    """

    since: dt.datetime
    others: int | None
    first: int | None


def wait_for_turn(purge: Purge, now: dt.datetime) -> TurnWait | None:
    """Return since when a purge or its scan waits for its turn; None if it does not wait for one."""
    if purge.wakeup_expires_at is None or purge.wakeup_expires_at <= now:
        return None
    is_scan = purge.state == PurgeState.SCANNING
    same = _waiting().filter(state__in=[PurgeState.SCANNING] if is_scan else ACTIVE_PURGES)
    some = Purge.objects.filter(pk__in=same.order_by().values("pk")[: MAX_WAITING + 1])
    in_order = list(_in_turn_order(some, *([] if is_scan else [_RANK])).values_list("id", flat=True))
    since = purge.wakeup_expires_at - dt.timedelta(seconds=settings.WAKEUP_EXPIRES_SECONDS)
    if len(in_order) > MAX_WAITING:
        return TurnWait(since, others=None, first=None)
    if purge.pk not in in_order:
        return None
    return TurnWait(since, others=len(in_order) - 1, first=in_order.index(purge.pk))


def does_any_purge_wait() -> bool:
    """Return whether a confirmed purge or an undo waits for its turn."""
    return _waiting().filter(state__in=ACTIVE_PURGES).exists()


def take_turn(*, ranks: Iterable[int] = RANKS, draw: Callable[[], float] = random.random) -> int | None:
    """Begin the turn of the confirmed purge or undo that comes next; return its id, or None if none waits.

    ranks: only those of these ranks. draw: returns a random number from 0 to 1.
    """
    while True:
        purge_id = _next_by_rank(_waiting().filter(state__in=ACTIVE_PURGES), ranks, draw)
        if purge_id is None or _receive(purge_id):
            return purge_id


def join_turn(*, draw: Callable[[], float] = random.random) -> int | None:
    """Begin a further worker's turn at the running purge that comes next; return its id, or None if none has work left.

    Turns go round as if these purges waited, so idle workers spread over all of them.
    """
    purge_id = _next_by_rank(joinable_purges(), RANKS, draw)
    return None if purge_id is None else begin_turn(purge_id)


def take_scan_turn() -> int | None:
    """Begin the turn of the scan that comes next; return its purge's id, or None if none waits."""
    while (purge_id := _next_in_turn(_waiting().filter(state=PurgeState.SCANNING))) is not None:
        if _receive(purge_id):
            return purge_id
    return None


def join_scan_turn() -> int | None:
    """Begin a further worker's turn at the running scan that comes next; return its purge's id, or None if none has
    parts left."""
    purge_id = _next_in_turn(joinable_scans())
    return None if purge_id is None else begin_turn(purge_id)


def begin_turn(purge_id: int) -> int:
    """Begin a turn of a purge that may not wait; return its id."""
    Purge.objects.filter(id=purge_id).schedule(wakeup_expires_at=None, turn_at=ClockTimestamp())
    return purge_id


_RANK = Case(
    When(is_rewrite=True, then=Value(REWRITE)),
    When(manifest__lte=SMALL_MESSAGES, then=Value(SMALL)),
    When(state=PurgeState.UNDOING, then=Value(UNDO)),
    default=Value(PURGE),
    output_field=IntegerField(),
)


def _next_by_rank(purges: PurgeQuerySet, ranks: Iterable[int], draw: Callable[[], float]) -> int | None:
    ranked = purges.annotate(rank=_RANK).filter(rank__in=ranks)
    while found := sorted(set(ranked.order_by().values_list("rank", flat=True))):
        # Other workers may have taken all purges of that rank since.
        if (purge_id := _next_in_turn(ranked.filter(rank=_draw_rank(found, draw)))) is not None:
            return purge_id
    return None


def _draw_rank(ranks: Sequence[int], draw: Callable[[], float]) -> int:
    drawn = draw()
    if drawn < PRECEDENCE or len(ranks) == 1:
        return ranks[0]
    others = ranks[1:]
    return others[min(int((drawn - PRECEDENCE) / (1 - PRECEDENCE) * len(others)), len(others) - 1)]


def _waiting() -> PurgeQuerySet:
    return Purge.objects.filter(wakeup_expires_at__gt=ClockTimestamp())


def _next_in_turn(purges: PurgeQuerySet) -> int | None:
    return _in_turn_order(purges).values_list("id", flat=True).first()


def _in_turn_order(purges: PurgeQuerySet, *before: Case) -> PurgeQuerySet:
    """Order purges by when their turns come. before: what they are ordered by before that."""
    by_guild, by_moderator = (
        F(name).asc(nulls_first=True) for name in ("last_turn_of_guild", "last_turn_of_moderator")
    )
    return purges.annotate(
        last_turn_of_guild=_last_turn(guild_id=OuterRef("guild_id")),
        last_turn_of_moderator=_last_turn(moderator_id=OuterRef("moderator_id")),
    ).order_by(*before, by_guild, by_moderator, F("turn_at").asc(nulls_first=True), "id")


def _last_turn(**of: OuterRef) -> Subquery:
    had_turns = Purge.objects.filter(**of, turn_at__isnull=False)
    return Subquery(had_turns.order_by("-turn_at").values("turn_at")[:1])


def _receive(purge_id: int) -> bool:
    """Begin the purge's turn unless another worker has done so since; return whether it was begun."""
    return _waiting().filter(id=purge_id).schedule(wakeup_expires_at=None, turn_at=ClockTimestamp()) == 1
