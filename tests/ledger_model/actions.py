"""Actions of users and jobs on a channel as generators: between two statements anything may be interleaved.

The order of the statements is that of the operation named in each docstring.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial

from chatstore.domain.buckets import bucket_ids, bucket_of, is_sealed
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import first_id_at
from chatstore.domain.whole_reads import WholeRead
from moderation.domain.planner import RECENT_MS, ids_inside, plan_ranges, split_recent
from moderation.domain.restoring import plan_restore
from tests.ledger_model.model import LEASE_US, SKEW_SECONDS, ChannelModel, Write, rows_of

Action = Iterator[None]

GIVE_UP_US = 4_000_000

PAGE_MS = 45 * MINUTE_MS
"""Page boundary in a read of an open bucket, so that messages arrive on both sides."""


def post(model: ChannelModel, write: Write, message_id: int, skew_us: int) -> Action:
    """Model `gateway.messages.post_message`."""
    rules, bucket = model.rules, bucket_of(message_id)
    if rules.row_comes_first:
        model.ensure_row(bucket)
        yield
    began_late = rules.is_late(message_id, now_ms=model.wall_ms(skew_us))
    yield
    if began_late and rules.clears_before:
        model.clear(bucket, skew_us)
        yield
    stamp = model.wall_us(skew_us)
    yield
    model.insert(message_id, stamp, write)
    yield
    is_late = began_late or (rules.rechecks_lateness and rules.is_late(message_id, now_ms=model.wall_ms(skew_us)))
    yield
    if is_late and rules.clears_after:
        model.clear(bucket, skew_us)
    write.is_done = True


def withdraw(model: ChannelModel, message_id: int, skew_us: int) -> Action:
    """Model `gateway.messages.withdraw_message`."""
    model.withdrawn.add(message_id)
    yield
    stamp = max(model.wall_us(skew_us), model.rows.get(message_id, 0) + 1)
    taken_us = model.now_us
    yield
    if model.now_us - taken_us <= GIVE_UP_US:
        model.delete(message_id, message_id, stamp)


def reconcile(model: ChannelModel, bucket: int, *, renews: bool) -> Action:
    """Model `ledger.refresh.try_refresh_bucket`, which renews its lock after the read.

    Without `renews`, `refresh_bucket` by an import: it checks its lock once, after the read's timestamp was taken. The
    lock lapses at once.
    """
    job = model.name_job("reconcile")
    checks = model.rules.checks_lock
    if renews and checks and not model.lock(job, 0):
        return
    read = model.begin_whole_read()
    yield
    if not renews and checks and not model.lock(job, 0):
        return
    yield from _read_pages(model, bucket, read)
    if renews and checks and not model.renew(job):
        return
    yield
    model.set_live(bucket, read)
    yield
    model.release(job)


def _read(model: ChannelModel, bucket: int) -> Generator[None, None, WholeRead]:
    read = model.begin_whole_read()
    yield
    yield from _read_pages(model, bucket, read)
    return read


def _read_pages(model: ChannelModel, bucket: int, read: WholeRead) -> Action:
    """Read the whole bucket in two pages, newest first; later writes to a page already read are missed."""
    first, last = bucket_ids(bucket)
    middle = first_id_at(model.now_us // 1_000 - PAGE_MS)
    if not first <= middle < last:
        middle = (first + last) // 2
    for low, high in ((middle + 1, last), (first, middle)):
        read.add(rows_of(one for one in model.living(bucket) if low <= one <= high))
        yield


def purge(
    model: ChannelModel, kept: dict[int, int], ids: Sequence[int], bucket: int, *, budget: int, existing_tombstones: int
) -> Action:
    """Model one step of `purging.execution`: delete ranges of older ids, or rows, and rewrite the survivors.

    kept: receives the deleted rows as id: write timestamp.
    existing_tombstones: tombstones of others in the bucket.
    """
    job = model.name_job("purge")
    while model.now_us - model.stamps.get(bucket, 0) <= SKEW_SECONDS * 1_000_000 or not model.lock(job, None):
        yield
    read_stamp = model.issue(bucket)
    yield
    older, recent = split_recent(sorted(ids), recent_from=first_id_at(read_stamp // 1_000 - RECENT_MS))
    living = model.living(bucket)
    kept.update((one, model.rows[one]) for one in living if one in set(ids))
    yield
    if older:
        stamp = read_stamp - SKEW_SECONDS * 1_000_000
        survivors = [one for one in living if one not in set(older)]
        sealed = is_sealed(bucket, now_ms=read_stamp // 1_000) and not recent
        plan = plan_ranges(older, survivors, existing_tombstones=existing_tombstones, sealed=sealed, budget=budget)
        for message_id in ids_inside(plan.rewritten, plan.ranges):
            model.send(partial(model.insert_again, message_id, stamp + 1))
            yield
        for first, last in plan.ranges:
            model.send(partial(model.delete, first, last, stamp))
            yield
    for message_id in recent:
        if message_id in kept:
            model.send(partial(model.delete, message_id, message_id, kept[message_id]))
            yield
    read = yield from _read(model, bucket)
    for message_id in [one for one in model.living(bucket) if one in set(ids)]:
        kept[message_id] = model.rows[message_id]
        model.send(partial(model.delete, message_id, message_id, model.rows[message_id]))
        yield
        read = yield from _read(model, bucket)
    model.set_live(bucket, read)
    yield
    model.release(job)


def undo(
    model: ChannelModel, write: Write, kept: Mapping[int, int], deleted_by_others: set[int], bucket: int
) -> Action:
    """Model one step of `undo.restore`."""
    job = model.name_job("undo")
    rules = model.rules
    while not model.lock(job, None):
        yield
    stamp = model.issue(bucket)
    yield
    outcome = plan_restore(
        kept, withdrawn=set(model.withdrawn), deleted_elsewhere=deleted_by_others, live=set(model.living(bucket))
    )
    yield
    if rules.clears_before:
        model.clear(bucket, 0)
        yield
    for message_id in sorted(outcome.wanted):
        at = max(stamp, kept[message_id] + 1)
        model.send(partial(model.insert, message_id, at, write))
        yield
    for message_id in sorted(outcome.wanted & model.withdrawn):
        model.send(partial(model.delete, message_id, message_id, model.rows[message_id]))
        yield
    if rules.clears_after:
        model.clear(bucket, 0)
        yield
    write.is_done = True
    model.release(job)


def load(
    model: ChannelModel, write: Write, ids: Sequence[int], bucket: int, skew_us: int, *, reconciles: bool
) -> Action:
    """Model one load of `importing.channels`. It has a lease, so another job may lock the channel meanwhile."""
    job = model.name_job("import")
    rules = model.rules
    while not model.lock(job, LEASE_US):
        yield
    _, cleared_at = model.ledger.get(bucket, (None, 0))
    yield
    stamp = model.issue(bucket)
    yield
    if not model.renew(job):
        write.is_abandoned = True
        return
    yield
    wanted = [one for one in ids if one not in model.withdrawn]
    if rules.row_comes_first:
        model.ensure_row(bucket)
        yield
    if rules.clears_before:
        model.clear_at(bucket, max(stamp - SKEW_SECONDS * 1_000_000, cleared_at + 1))
        yield
    for message_id in wanted:
        model.send(partial(model.insert, message_id, stamp, write))
        yield
    for message_id in [one for one in wanted if one in model.withdrawn]:
        model.send(partial(model.delete, message_id, message_id, stamp))
        yield
    if not model.renew(job) and rules.clears_after:
        model.clear(bucket, skew_us)
    write.is_done = True
    yield
    if reconciles:
        read = model.begin_whole_read()
        yield
        if model.renew(job):
            yield from _read_pages(model, bucket, read)
            model.set_live(bucket, read)
            yield
    model.release(job)
