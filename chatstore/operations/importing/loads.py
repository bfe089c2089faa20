"""Writing one load of an import: some thousand messages, in several buckets of one channel or many.

Never done: a live row overwritten without a later edited time; an id brought back that its
author withdrew or that a standing purge removed; a row bound with None.

The import's process may be suspended at any point, its lease may expire and a purge may run
before the next statement is sent. Such a late statement brings nothing back: an overwrite does
not write the author, without whom a row is no message, and an insert carries a stamp older than
whatever has made the message live since.

In this order: the stamps are issued; then the store is read (what lives, what was
withdrawn); `live` is cleared; rows are written at the stamp; `withdrawn` is read again and
what it names by then is taken back at the very stamp it was written with, so that nothing
newer can be hit. A crash leaves rows and a cleared `live`; the next run finds the rows there and
goes on. Each part may be done twice.

`live` is cleared at the load's stamp less the allowed clock skew, and later than what the ledger
says: while the import has the channel locked, no other job sets `live` there, and the value it sets
itself after its own read, stamped in the same way, takes effect at once. An import that lost its
channel clears again, at this moment's stamp.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from chatstore.domain import withdrawals
from chatstore.domain.buckets import BucketKey
from chatstore.domain.messages import Message
from chatstore.operations.coordination.timestamps import issue_stamps
from chatstore.store.authors import ensure_author_buckets
from chatstore.store.cassandra import Params, Pending, drain, execute_window, submit_batch
from chatstore.store.loads import clear_live_at, clear_live_in, read_edited, withdrawn_in
from chatstore.store.messages import delete_row, insert_jobs, to_values, update_job
from chatstore.store.pins import note_pins

IN_FLIGHT = 32
"""Batches of a load on their way at once; those of the load before mostly have arrived."""

Check = Callable[[], None]


def no_check() -> None:
    """For loads that nothing can prevent."""


StandingIn = Callable[[int, int], Collection[int]]
"""(channel id, bucket) to the ids for which a purge stands."""

Standing = Callable[[Collection[int]], StandingIn]
"""Channels that the import has just locked to what purges stand for there."""


@dataclass(slots=True)
class Load:
    """Messages that are written together, each id of a channel once."""

    count: int = 0
    already_there: int = 0
    updated: int = 0
    _by_channel: dict[int, dict[int, Message]] = field(default_factory=dict)

    def add(self, message: Message) -> None:
        """Take a message; of two with one id the one edited later stays."""
        messages = self._by_channel.setdefault(message.channel_id, {})
        known = messages.get(message.message_id)
        if known is None:
            messages[message.message_id] = message
            self.count += 1
        elif is_later(message.edited_at, known.edited_at):
            messages[message.message_id] = message
            self.updated += 1
        else:
            self.already_there += 1

    def clear(self) -> None:
        """Begin again, empty."""
        self._by_channel.clear()
        self.count = self.already_there = self.updated = 0

    def by_bucket(self) -> Grouped:
        """The messages of each bucket, channels, buckets and ids ascending."""
        grouped: Grouped = defaultdict(list)
        for channel_id, messages in sorted(self._by_channel.items()):
            for message_id in sorted(messages):
                message = messages[message_id]
                grouped[channel_id, message.bucket].append(message)
        return dict(grouped)


Grouped = dict[BucketKey, list[Message]]
"""Messages by bucket, ids ascending."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a load, by what the store held after the stamps were issued.

    new, changed: by bucket. put_back: ids for which a purge stands and that live after this,
    among them such as live already; restored: how many of the new they are. clears: the buckets
    that are written to, with the stamp (µs) at which their `live` is cleared.
    """

    stamps: dict[BucketKey, int]
    new: Grouped
    changed: Grouped
    put_back: dict[BucketKey, list[int]]
    restored: int
    already_there: int
    removed_before: int
    clears: dict[BucketKey, int]


def is_later(edited: dt.datetime | None, than: dt.datetime | None) -> bool:
    """Whether one edited time (None: never) is later than another."""
    return edited is not None and (than is None or edited > than)


def decide_load(
    load: Load,
    *,
    live_stamps: Mapping[BucketKey, int],
    asks_all: bool,
    standing: StandingIn,
    under_way: StartedLoad | None = None,
    restore: bool = False,
    dry_run: bool = False,
) -> Decision:
    """Sort a load out: new, changed, there already, removed before.

    live_stamps: of the buckets with a ledger row the stamp of what it says. No row means never
    written, and nothing is asked of such a bucket, unless asks_all. under_way: the load before,
    which may not have arrived. restore: ids of standing purges come back.
    """
    grouped = load.by_bucket()
    stamps = {} if dry_run else issue_stamps(grouped)
    gone = withdrawn_in(list(grouped))
    asked = {key: [m.message_id for m in found] for key, found in grouped.items() if asks_all or key in live_stamps}
    edited = read_edited(asked)
    if under_way is not None:
        under_way.add_edited(edited)
    new: Grouped = {}
    changed: Grouped = {}
    put_back: dict[BucketKey, list[int]] = {}
    restored = already_there = removed_before = 0
    for key, found in grouped.items():
        removed = standing(*key)
        withdrawn_here = gone.get(key, withdrawals.NONE)
        live = edited.get(key, {})
        for message in found:
            message_id = message.message_id
            if withdrawn_here.has(message_id, author_id=message.author_id):
                removed_before += 1
                continue
            if message_id in live:
                if is_later(message.edited_at, live[message_id]):
                    changed.setdefault(key, []).append(message)
                else:
                    already_there += 1
            elif message_id in removed and not restore:
                removed_before += 1
                continue
            else:
                new.setdefault(key, []).append(message)
                restored += message_id in removed
            if restore and message_id in removed:
                put_back.setdefault(key, []).append(message_id)
    skew = settings.CLOCK_SKEW_SECONDS * 1_000_000
    written = () if dry_run else sorted(new.keys() | changed.keys())
    clears = {key: max(stamps[key] - skew, live_stamps.get(key, 0) + 1) for key in written}
    return Decision(stamps, new, changed, put_back, restored, already_there, removed_before, clears)


class DryRun:
    """What a dry run would have written, by channel, to count none of it twice."""

    def __init__(self) -> None:
        self._seen: dict[int, _SeenIds] = defaultdict(_SeenIds)

    def leave_out_seen(self, decision: Decision) -> Decision:
        """Move what an earlier load had already from *new* to *already there*; remember the rest."""
        new: Grouped = {}
        for key, found in decision.new.items():
            seen = self._seen[key[0]]
            fresh = [message for message in found if not seen.has(message.message_id)]
            if fresh:
                new[key] = fresh
        for (channel_id, _), found in new.items():
            self._seen[channel_id].add(message.message_id for message in found)
        left_out = sum(map(len, decision.new.values())) - sum(map(len, new.values()))
        return replace(decision, new=new, already_there=decision.already_there + left_out)


class _SeenIds:
    """Ids, eight bytes each."""

    def __init__(self) -> None:
        self._runs: list[array[int]] = []
        self._highest: int | None = None

    def add(self, ids: Iterable[int]) -> None:
        """Add ids of one bucket, which have not been added yet, ascending."""
        run = array("q", ids)
        self._runs.append(run)
        self._highest = run[-1] if self._highest is None else max(self._highest, run[-1])

    def has(self, message_id: int) -> bool:
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

    def add_edited(self, edited: dict[BucketKey, dict[int, dt.datetime | None]]) -> None:
        """Add the edited times of its messages: to the next load they live already."""
        for grouped in (self.decision.new, self.decision.changed):
            for key, found in grouped.items():
                edited.setdefault(key, {}).update((m.message_id, m.edited_at) for m in found)


def start_load(decision: Decision, *, check: Check = no_check) -> StartedLoad:
    """Clear `live`, then send the inserts without waiting for the last of them.

    `check` is called before each statement that writes messages, and raises to prevent it.
    """
    flying: deque[Pending] = deque()
    if not decision.clears:
        return StartedLoad(decision, flying)
    check()
    clear_live_at(decision.clears)
    ensure_author_buckets({(m.author_id, bucket, channel_id) for (channel_id, bucket), m in _each(decision)})
    try:
        for key, found in decision.new.items():
            for cql, rows in insert_jobs(found, stamp_us=decision.stamps[key]):
                if len(flying) >= IN_FLIGHT:
                    flying.popleft().rows()
                check()
                flying.append(submit_batch(cql, rows))
    except BaseException:
        drain(flying)
        raise
    return StartedLoad(decision, flying)


def _each(decision: Decision) -> Iterator[tuple[BucketKey, Message]]:
    """Every message that is written, with its bucket."""
    for grouped in (decision.new, decision.changed):
        for key, found in grouped.items():
            for message in found:
                yield key, message


def finish_load(started: StartedLoad, *, check: Check = no_check) -> set[tuple[int, int]]:
    """Wait for the inserts and do the rest; gives (channel id, id) of what was withdrawn meanwhile.

    `check` as for `start_load`. Raises `StoreUnavailable` when any of it failed: `write_load`
    then does it all again.
    """
    while started.flying:
        started.flying.popleft().rows()
    decision = started.decision
    if not decision.clears:
        return set()
    for _ in execute_window(_overwrites(decision, check)):
        pass
    note_pins((m.channel_id, m.message_id, decision.stamps[key]) for key, m in _each(decision) if m.pinned)
    return _take_back(decision)


def write_load(decision: Decision, *, check: Check = no_check) -> set[tuple[int, int]]:
    """Both at once: write what was decided; done twice it changes nothing."""
    return finish_load(start_load(decision, check=check), check=check)


def close_load(decision: Decision) -> None:
    """End a load that was given up halfway, by an import that may have lost its channel.

    Of what was sent, nothing withdrawn stays, and nothing is skipped by pages.
    """
    _take_back(decision)
    clear_live_in(decision.clears)


def _overwrites(decision: Decision, check: Check) -> Iterator[tuple[str, Params]]:
    for key, found in decision.changed.items():
        for message in found:
            check()
            yield update_job(message.channel_id, message.message_id, _edited(message), stamp_us=decision.stamps[key])


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


def _take_back(decision: Decision) -> set[tuple[int, int]]:
    """Delete what was withdrawn while it was written; a delete wins over a write of its own stamp."""
    taken_back = set()
    for key, gone in withdrawn_in(list(decision.clears)).items():
        for message in (*decision.new.get(key, ()), *decision.changed.get(key, ())):
            if gone.has(message.message_id, author_id=message.author_id):
                delete_row(message.channel_id, message.message_id, stamp_us=decision.stamps[key])
                taken_back.add((message.channel_id, message.message_id))
    return taken_back
