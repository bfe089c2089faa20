"""Write one load of an import: a few thousand messages, in several buckets of one or more channels.

Invariants: a live row is not overwritten without a later edited time; an id that its author withdrew, or that
a purge deleted and no undo restored, is not restored; no row is bound with None.

The importing process may be suspended at any point, its lease may expire, and a purge may run before it sends
the next statement. Such a late statement restores nothing: an overwrite does not write the author, and a row
without an author is not a message; an insert has a stamp older than whatever made the message live since.

Order of operations: issue the stamps; then read the store (live rows, withdrawals); clear `live`; write rows
at the stamp; read `withdrawn` again and delete rows that it names by then, at the same stamp they were written
with, so that nothing newer is affected. A crash leaves rows and a cleared `live`; the next run finds the
rows and continues. Each part is idempotent.

`live` is cleared at the load's stamp less the allowed clock skew, and later than the ledger's own stamp. While
the import has the channel locked, no other job sets `live` there, and the value that the import sets after its
own read, stamped in the same way, takes effect at once. An import that lost its channel clears again, at the
current stamp.
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
"""Maximum number of batches of a load in flight; most of the previous load have completed by then."""

Check = Callable[[], None]


def no_check() -> None:
    """Allow every write; for loads that need no lease."""


DeletedIdsIn = Callable[[int, int], Collection[int]]
"""Function from (channel id, bucket) to the ids that purges deleted and that were not restored."""

DeletedIdsFactory = Callable[[Collection[int]], DeletedIdsIn]
"""Function from channels that the import has just locked to their deleted ids."""


@dataclass(slots=True)
class Load:
    """Messages that are written together, each id of a channel once."""

    count: int = 0
    already_there: int = 0
    updated: int = 0
    _by_channel: dict[int, dict[int, Message]] = field(default_factory=dict)

    def add(self, message: Message) -> None:
        """Add a message; of two with the same id, keep the one edited later."""
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
        """Empty the load for reuse."""
        self._by_channel.clear()
        self.count = self.already_there = self.updated = 0

    def by_bucket(self) -> Grouped:
        """Return the messages of each bucket, ordered by channel, bucket and id."""
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
    """Actions for a load, decided by the contents of the store after the stamps were issued.

    new, changed: by bucket. restored_ids: ids that a purge deleted and that are live after this load, including those
    that are live already; restored: how many of the new ones they are. clears: the buckets that are written, with
    the stamp (µs) at which their `live` is cleared.
    """

    stamps: dict[BucketKey, int]
    new: Grouped
    changed: Grouped
    restored_ids: dict[BucketKey, list[int]]
    restored: int
    already_there: int
    deleted_before: int
    clears: dict[BucketKey, int]


def is_later(edited: dt.datetime | None, than: dt.datetime | None) -> bool:
    """Return whether one edited time (None: never edited) is later than another."""
    return edited is not None and (than is None or edited > than)


def decide_load(
    load: Load,
    *,
    live_stamps: Mapping[BucketKey, int],
    read_unlisted: bool,
    deleted_ids: DeletedIdsIn,
    previous: StartedLoad | None = None,
    restore: bool = False,
    dry_run: bool = False,
) -> Decision:
    """Classify the messages of a load: new, changed, already live, deleted before.

    live_stamps: stamps of the existing ledger rows, by bucket. Without a row a bucket was never written and is
    not read, unless read_unlisted. previous: the previous load, which may not be written completely.
    restore: restore ids that purges deleted.
    """
    grouped = load.by_bucket()
    stamps = {} if dry_run else issue_stamps(grouped)
    gone = withdrawn_in(list(grouped))
    requested = {
        key: [m.message_id for m in found] for key, found in grouped.items() if read_unlisted or key in live_stamps
    }
    edited = read_edited(requested)
    if previous is not None:
        previous.add_edited(edited)
    new: Grouped = {}
    changed: Grouped = {}
    restored_ids: dict[BucketKey, list[int]] = {}
    restored = already_there = deleted_before = 0
    for key, found in grouped.items():
        deleted = deleted_ids(*key)
        withdrawn_here = gone.get(key, withdrawals.NONE)
        live = edited.get(key, {})
        for message in found:
            message_id = message.message_id
            if withdrawn_here.has(message_id, author_id=message.author_id):
                deleted_before += 1
                continue
            if message_id in live:
                if is_later(message.edited_at, live[message_id]):
                    changed.setdefault(key, []).append(message)
                else:
                    already_there += 1
            elif message_id in deleted and not restore:
                deleted_before += 1
                continue
            else:
                new.setdefault(key, []).append(message)
                restored += message_id in deleted
            if restore and message_id in deleted:
                restored_ids.setdefault(key, []).append(message_id)
    skew = settings.CLOCK_SKEW_SECONDS * 1_000_000
    written = () if dry_run else sorted(new.keys() | changed.keys())
    clears = {key: max(stamps[key] - skew, live_stamps.get(key, 0) + 1) for key in written}
    return Decision(stamps, new, changed, restored_ids, restored, already_there, deleted_before, clears)


class DryRun:
    """Messages that a dry run would have written, by channel, so that none is counted twice."""

    def __init__(self) -> None:
        self._seen: dict[int, _SeenIds] = defaultdict(_SeenIds)

    def exclude_seen(self, decision: Decision) -> Decision:
        """Move messages of earlier loads from *new* to *already live*, and record the ids of the others."""
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
    """Set of ids, at eight bytes each."""

    def __init__(self) -> None:
        self._runs: list[array[int]] = []
        self._highest: int | None = None

    def add(self, ids: Iterable[int]) -> None:
        """Add new ids of one bucket, in ascending order."""
        run = array("q", ids)
        self._runs.append(run)
        self._highest = run[-1] if self._highest is None else max(self._highest, run[-1])

    def has(self, message_id: int) -> bool:
        # Files are sorted by time, so nearly every id is the highest so far.
        if self._highest is None or message_id > self._highest:
            return False
        places = ((run, bisect_left(run, message_id)) for run in self._runs if run[0] <= message_id <= run[-1])
        return any(run[place] == message_id for run, place in places)


@dataclass(slots=True)
class StartedLoad:
    """Load whose inserts are in flight while the next one is read, decided and sent."""

    decision: Decision
    pending: deque[Pending]

    def add_edited(self, edited: dict[BucketKey, dict[int, dt.datetime | None]]) -> None:
        """Add the edited times of its messages, which count as live for the next load."""
        for grouped in (self.decision.new, self.decision.changed):
            for key, found in grouped.items():
                edited.setdefault(key, {}).update((m.message_id, m.edited_at) for m in found)


def start_load(decision: Decision, *, check: Check = no_check) -> StartedLoad:
    """Clear `live`, then send the inserts without waiting for the last of them.

    `check` is called before each statement that writes messages, and raises to prevent it.
    """
    pending: deque[Pending] = deque()
    if not decision.clears:
        return StartedLoad(decision, pending)
    check()
    clear_live_at(decision.clears)
    ensure_author_buckets({(m.author_id, bucket, channel_id) for (channel_id, bucket), m in _each(decision)})
    try:
        for key, found in decision.new.items():
            for cql, rows in insert_jobs(found, stamp_us=decision.stamps[key]):
                if len(pending) >= IN_FLIGHT:
                    pending.popleft().rows()
                check()
                pending.append(submit_batch(cql, rows))
    except BaseException:
        drain(pending)
        raise
    return StartedLoad(decision, pending)


def _each(decision: Decision) -> Iterator[tuple[BucketKey, Message]]:
    """Yield every message to write, with its bucket."""
    for grouped in (decision.new, decision.changed):
        for key, found in grouped.items():
            for message in found:
                yield key, message


def finish_load(started: StartedLoad, *, check: Check = no_check) -> set[tuple[int, int]]:
    """Wait for the inserts and complete the load; return (channel id, id) of messages withdrawn in the meantime.

    `check` as for `start_load`. Raises `StoreUnavailable` if any part failed; `write_load` then repeats
    everything.
    """
    while started.pending:
        started.pending.popleft().rows()
    decision = started.decision
    if not decision.clears:
        return set()
    for _ in execute_window(_overwrites(decision, check)):
        pass
    note_pins((m.channel_id, m.message_id, decision.stamps[key]) for key, m in _each(decision) if m.pinned)
    return _delete_withdrawn_rows(decision)


def write_load(decision: Decision, *, check: Check = no_check) -> set[tuple[int, int]]:
    """Start and finish a load. Idempotent."""
    return finish_load(start_load(decision, check=check), check=check)


def abort_load(decision: Decision) -> None:
    """Abort a load halfway, for an import that may have lost its channel.

    Afterwards no withdrawn message is left of what was sent, and pages skip nothing.
    """
    _delete_withdrawn_rows(decision)
    clear_live_in(decision.clears)


def _overwrites(decision: Decision, check: Check) -> Iterator[tuple[str, Params]]:
    for key, found in decision.changed.items():
        for message in found:
            check()
            yield update_job(message.channel_id, message.message_id, _edited(message), stamp_us=decision.stamps[key])


def _edited(message: Message) -> dict[str, Any]:
    """Return the columns of a changed message that an edit can change.

    Removed parts become empty, which for a frozen collection is a value and not a tombstone. The author is never
    included: it does not change, and a row that a purge deleted in the meantime must not become a message again.
    Nor is the pinned state, which edits do not change.
    """
    empty = {"flags": 0, "attachments": [], "embeds": [], "stickers": [], "reactions": {}, "mentions": []}
    values = {**empty, **to_values(message)}
    del values["author_id"]
    return values


def _delete_withdrawn_rows(decision: Decision) -> set[tuple[int, int]]:
    """Delete messages withdrawn while they were written; at equal stamps a delete wins over a write."""
    withdrawn_meanwhile = set()
    for key, gone in withdrawn_in(list(decision.clears)).items():
        for message in (*decision.new.get(key, ()), *decision.changed.get(key, ())):
            if gone.has(message.message_id, author_id=message.author_id):
                delete_row(message.channel_id, message.message_id, stamp_us=decision.stamps[key])
                withdrawn_meanwhile.add((message.channel_id, message.message_id))
    return withdrawn_meanwhile
