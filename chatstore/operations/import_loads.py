"""Writing one load of an import: some thousand messages of one channel, in several buckets.

Never done: a live row overwritten without a later edited time; an id brought back that its
author withdrew or that a standing purge removed; a row bound with None.

The import's process may be suspended at any point, its lease may expire and a purge may run
before the next statement is sent. Such a late statement brings nothing back: an overwrite does
not write the author, without whom a row is no message, and an insert carries a stamp older than
whatever has made the message live since.

In this order: the stamps are issued; then the store is read (what lives, what was
withdrawn); `live` is cleared; rows are written at the stamp; `withdrawn` is read again and
what it names by then is taken back at the very stamp it was written with, so that nothing
newer can be hit; `live` is cleared again. A crash leaves rows and a cleared `live`; the next
run finds the rows there and goes on. Each part may be done twice.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from chatstore.domain import withdrawals
from chatstore.domain.messages import Message
from chatstore.operations.stamps import issue_stamps
from chatstore.store.authors import ensure_author_buckets
from chatstore.store.cassandra import Params, Pending, drain, execute_window, submit_batch
from chatstore.store.loads import clear_live_in, read_edited, withdrawn_in
from chatstore.store.messages import delete_row, insert_jobs, to_values, update_job
from chatstore.store.pins import note_pins

IN_FLIGHT = 32
"""Batches of a load on their way at once; those of the load before mostly have arrived."""

Check = Callable[[], None]


def no_check() -> None:
    """For loads that nothing can prevent."""


Standing = Callable[[int, int], Collection[int]]
"""(channel id, bucket) to the ids for which a purge stands."""


@dataclass(slots=True)
class Load:
    """Messages of one channel that are written together, each id once."""

    channel_id: int
    messages: dict[int, Message] = field(default_factory=dict)
    already_there: int = 0
    updated: int = 0

    def add(self, message: Message) -> None:
        """Take a message; of two with one id the one edited later stays."""
        known = self.messages.get(message.message_id)
        if known is None:
            self.messages[message.message_id] = message
        elif is_later(message.edited_at, known.edited_at):
            self.messages[message.message_id] = message
            self.updated += 1
        else:
            self.already_there += 1

    def clear(self) -> None:
        """Begin again, empty."""
        self.messages.clear()
        self.already_there = self.updated = 0

    def by_bucket(self) -> Grouped:
        """The messages of each bucket, buckets and ids ascending."""
        grouped: Grouped = defaultdict(list)
        for message_id in sorted(self.messages):
            message = self.messages[message_id]
            grouped[message.bucket].append(message)
        return dict(grouped)


Grouped = dict[int, list[Message]]
"""Messages by bucket, ids ascending."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a load, by what the store held after the stamps were issued.

    new, changed: by bucket. put_back: ids for which a purge stands and that live after this,
    among them such as live already; restored: how many of the new they are.
    """

    stamps: dict[int, int]
    new: Grouped
    changed: Grouped
    put_back: dict[int, list[int]]
    restored: int
    already_there: int
    removed_before: int

    @property
    def buckets(self) -> list[int]:
        """The buckets that are written to."""
        return sorted(self.new.keys() | self.changed.keys())


def is_later(edited: dt.datetime | None, than: dt.datetime | None) -> bool:
    """Whether one edited time (None: never) is later than another."""
    return edited is not None and (than is None or edited > than)


def decide_load(
    load: Load,
    *,
    known_buckets: Collection[int] | None,
    standing: Standing,
    under_way: StartedLoad | None = None,
    restore: bool = False,
    dry_run: bool = False,
) -> Decision:
    """Sort a load out: new, changed, there already, removed before.

    known_buckets: those with a ledger row (no row means never written, so nothing is asked
    of them); None when every bucket is to be asked. under_way: the load before, which may
    not have arrived. restore: ids of standing purges come back.
    """
    grouped = load.by_bucket()
    stamps = {} if dry_run else issue_stamps(load.channel_id, list(grouped))
    asked = {b: ids for b, ids in grouped.items() if known_buckets is None or b in known_buckets}
    gone = withdrawn_in(load.channel_id, list(grouped))
    live = read_edited(load.channel_id, {b: [m.message_id for m in found] for b, found in asked.items()})
    if under_way is not None:
        live.update(under_way.edited())
    new: Grouped = {}
    changed: Grouped = {}
    put_back: dict[int, list[int]] = {}
    restored = already_there = removed_before = 0
    for bucket, found in grouped.items():
        removed = standing(load.channel_id, bucket)
        withdrawn_here = gone.get(bucket, withdrawals.NONE)
        for message in found:
            message_id = message.message_id
            if withdrawn_here.has(message_id, author_id=message.author_id):
                removed_before += 1
                continue
            if message_id in live:
                if is_later(message.edited_at, live[message_id]):
                    changed.setdefault(bucket, []).append(message)
                else:
                    already_there += 1
            elif message_id in removed and not restore:
                removed_before += 1
                continue
            else:
                new.setdefault(bucket, []).append(message)
                restored += message_id in removed
            if restore and message_id in removed:
                put_back.setdefault(bucket, []).append(message_id)
    return Decision(stamps, new, changed, put_back, restored, already_there, removed_before)


class DryRun:
    """The ids that a dry run would have written, eight bytes each, to count none of them twice."""

    def __init__(self) -> None:
        self._runs: list[array[int]] = []
        self._highest: int | None = None

    def leave_out_seen(self, decision: Decision) -> Decision:
        """Move what an earlier load had already from *new* to *already there*; remember the rest."""
        new: Grouped = {}
        for bucket, found in decision.new.items():
            fresh = [message for message in found if not self._has(message.message_id)]
            if fresh:
                new[bucket] = fresh
        ids = array("q", sorted(message.message_id for found in new.values() for message in found))
        if ids:
            self._runs.append(ids)
            self._highest = ids[-1] if self._highest is None else max(self._highest, ids[-1])
        seen = sum(map(len, decision.new.values())) - len(ids)
        return replace(decision, new=new, already_there=decision.already_there + seen)

    def _has(self, message_id: int) -> bool:
        # Files are in the order of time: nearly every id is the highest so far.
        if self._highest is None or message_id > self._highest:
            return False
        places = ((run, bisect_left(run, message_id)) for run in self._runs if run[0] <= message_id <= run[-1])
        return any(run[place] == message_id for run, place in places)


@dataclass(slots=True)
class StartedLoad:
    """A load whose inserts are under way; the next one is read, decided and sent meanwhile."""

    decision: Decision
    flying: deque[Pending]

    def edited(self) -> dict[int, dt.datetime | None]:
        """The edited times of its messages: to the next load they live already."""
        grouped = (self.decision.new, self.decision.changed)
        return {m.message_id: m.edited_at for each in grouped for found in each.values() for m in found}


def start_load(channel_id: int, decision: Decision, *, check: Check = no_check) -> StartedLoad:
    """Clear `live`, then send the inserts without waiting for the last of them.

    `check` is called before each statement that writes messages, and raises to prevent it.
    """
    flying: deque[Pending] = deque()
    if not decision.buckets:
        return StartedLoad(decision, flying)
    check()
    clear_live_in(channel_id, decision.buckets)
    ensure_author_buckets(
        {
            (message.author_id, bucket, channel_id)
            for grouped in (decision.new, decision.changed)
            for bucket, found in grouped.items()
            for message in found
        }
    )
    try:
        for bucket, found in decision.new.items():
            for cql, rows in insert_jobs(found, stamp_us=decision.stamps[bucket]):
                if len(flying) >= IN_FLIGHT:
                    flying.popleft().rows()
                check()
                flying.append(submit_batch(cql, rows))
    except BaseException:
        drain(flying)
        raise
    return StartedLoad(decision, flying)


def finish_load(channel_id: int, started: StartedLoad, *, check: Check = no_check) -> set[int]:
    """Wait for the inserts and do the rest; gives the ids that were withdrawn meanwhile.

    `check` as for `start_load`. Raises `StoreUnavailable` when any of it failed: `write_load`
    then does it all again.
    """
    while started.flying:
        started.flying.popleft().rows()
    decision = started.decision
    if not decision.buckets:
        return set()
    for _ in execute_window(_overwrites(decision, check)):
        pass
    note_pins(
        (message.channel_id, message.message_id, decision.stamps[bucket])
        for grouped in (decision.new, decision.changed)
        for bucket, found in grouped.items()
        for message in found
        if message.pinned
    )
    return close_load(channel_id, decision)


def write_load(channel_id: int, decision: Decision, *, check: Check = no_check) -> set[int]:
    """Both at once: write what was decided; done twice it changes nothing."""
    return finish_load(channel_id, start_load(channel_id, decision, check=check), check=check)


def close_load(channel_id: int, decision: Decision) -> set[int]:
    """Take back what was withdrawn while the load was written, and clear `live` again.

    Also for a load that was given up halfway: of what was sent, nothing withdrawn stays and
    nothing is skipped by pages.
    """
    taken_back = _take_back(channel_id, decision)
    clear_live_in(channel_id, decision.buckets)
    return taken_back


def _overwrites(decision: Decision, check: Check) -> Iterator[tuple[str, Params]]:
    for bucket, found in decision.changed.items():
        for message in found:
            check()
            yield update_job(message.channel_id, message.message_id, _edited(message), stamp_us=decision.stamps[bucket])


def _edited(message: Message) -> dict[str, Any]:
    """The columns of a changed message that its edit may have changed.

    What it no longer has becomes empty, which for a frozen collection is a value and no
    tombstone. Never its author: who wrote it does not change, and a row that a purge deleted
    meanwhile must not become a message again. Whether it is pinned is not the edit's to say.
    """
    empty = {"flags": 0, "attachments": [], "embeds": [], "stickers": [], "reactions": {}, "mentions": []}
    values = {**empty, **to_values(message)}
    del values["author_id"]
    return values


def _take_back(channel_id: int, decision: Decision) -> set[int]:
    """Delete what was withdrawn while it was written; a delete wins over a write of its own stamp."""
    taken_back = set()
    for bucket, gone in withdrawn_in(channel_id, decision.buckets).items():
        for message in (*decision.new.get(bucket, ()), *decision.changed.get(bucket, ())):
            if gone.has(message.message_id, author_id=message.author_id):
                delete_row(channel_id, message.message_id, stamp_us=decision.stamps[bucket])
                taken_back.add(message.message_id)
    return taken_back
