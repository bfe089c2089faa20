"""Actions of users and jobs on a channel as generators: between two statements anything may be interleaved.

The order of the statements is that of the operation named in each docstring.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial

from chatstore.domain.buckets import bucket_ids, bucket_of, is_sealed
from chatstore.domain.snowflakes import first_id_at
from chatstore.domain.whole_reads import WholeRead
from moderation.domain.planner import RECENT_MS, ids_inside, plan_spans, split_recent
from moderation.domain.restoring import sort_out
from tests.skipping.world import LEASE_US, SKEW_SECONDS, World, Write, rows_of

Act = Iterator[None]

GIVE_UP_US = 4_000_000

PAGE_MS = 45 * 60_000
"""Page boundary in a read of an open bucket, so that messages arrive on both sides."""


def post(world: World, write: Write, message_id: int, skew_us: int) -> Act:
    """Model `gateway.messages.post_message`."""
    rules, bucket = world.rules, bucket_of(message_id)
    if rules.row_comes_first:
        world.ensure_row(bucket)
        yield
    began_late = rules.is_late(message_id, now_ms=world.wall_ms(skew_us))
    yield
    if began_late and rules.clears_before:
        world.clear(bucket, skew_us)
        yield
    stamp = world.wall_us(skew_us)
    yield
    world.insert(message_id, stamp, write)
    yield
    is_late = began_late or (rules.asks_again and rules.is_late(message_id, now_ms=world.wall_ms(skew_us)))
    yield
    if is_late and rules.clears_after:
        world.clear(bucket, skew_us)
    write.is_done = True


def withdraw(world: World, message_id: int, skew_us: int) -> Act:
    """Model `gateway.messages.withdraw_message`."""
    world.withdrawn.add(message_id)
    yield
    stamp = max(world.wall_us(skew_us), world.rows.get(message_id, 0) + 1)
    taken_us = world.now_us
    yield
    if world.now_us - taken_us <= GIVE_UP_US:
        world.delete(message_id, message_id, stamp)


def look(world: World, bucket: int, *, minds_lock: bool) -> Act:
    """Model `ledger.refresh.try_refresh_bucket`; without `respects_lock` the job has lost its lock."""
    job = world.name_job("look")
    if minds_lock and not world.hold(job, 0):
        return
    read = yield from _read(world, bucket)
    if minds_lock and not world.renew(job):
        return
    yield
    world.set_live(bucket, read)
    yield
    world.release(job)


def _read(world: World, bucket: int) -> Generator[None, None, WholeRead]:
    """Read the whole bucket in two pages, newest first; later writes to a page already read are missed."""
    read = world.begin_whole_read()
    yield
    first, last = bucket_ids(bucket)
    middle = first_id_at(world.now_us // 1_000 - PAGE_MS)
    if not first <= middle < last:
        middle = (first + last) // 2
    for low, high in ((middle + 1, last), (first, middle)):
        read.add(rows_of(one for one in world.living(bucket) if low <= one <= high))
        yield
    return read


def purge(world: World, kept: dict[int, int], ids: Sequence[int], bucket: int, *, budget: int, standing: int) -> Act:
    """Model one step of `purging.execution`: delete ranges of older ids, or rows, and rewrite the survivors.

    kept: receives the deleted rows as id: write timestamp.
    standing: tombstones of others in the bucket.
    """
    job = world.name_job("purge")
    while world.now_us - world.stamps.get(bucket, 0) <= SKEW_SECONDS * 1_000_000 or not world.hold(job, None):
        yield
    read_stamp = world.issue(bucket)
    yield
    older, recent = split_recent(sorted(ids), recent_from=first_id_at(read_stamp // 1_000 - RECENT_MS))
    living = world.living(bucket)
    kept.update((one, world.rows[one]) for one in living if one in set(ids))
    yield
    if older:
        stamp = read_stamp - SKEW_SECONDS * 1_000_000
        survivors = [one for one in living if one not in set(older)]
        sealed = is_sealed(bucket, now_ms=read_stamp // 1_000) and not recent
        plan = plan_spans(older, survivors, standing_tombstones=standing, sealed=sealed, budget=budget)
        for message_id in ids_inside(plan.rewritten, plan.spans):
            world.send(partial(world.insert_again, message_id, stamp + 1))
            yield
        for first, last in plan.spans:
            world.send(partial(world.delete, first, last, stamp))
            yield
    for message_id in recent:
        if message_id in kept:
            world.send(partial(world.delete, message_id, message_id, kept[message_id]))
            yield
    read = yield from _read(world, bucket)
    for message_id in [one for one in world.living(bucket) if one in set(ids)]:
        kept[message_id] = world.rows[message_id]
        world.send(partial(world.delete, message_id, message_id, world.rows[message_id]))
        yield
        read = yield from _read(world, bucket)
    world.set_live(bucket, read)
    yield
    world.release(job)


def undo(world: World, write: Write, kept: Mapping[int, int], standing_elsewhere: set[int], bucket: int) -> Act:
    """Model one step of `undo.restore`."""
    job = world.name_job("undo")
    rules = world.rules
    while not world.hold(job, None):
        yield
    stamp = world.issue(bucket)
    yield
    outcome = sort_out(
        kept, withdrawn=set(world.withdrawn), standing_elsewhere=standing_elsewhere, live=set(world.living(bucket))
    )
    yield
    if rules.clears_before:
        world.clear(bucket, 0)
        yield
    for message_id in sorted(outcome.wanted):
        at = max(stamp, kept[message_id] + 1)
        world.send(partial(world.insert, message_id, at, write))
        yield
    for message_id in sorted(outcome.wanted & world.withdrawn):
        world.send(partial(world.delete, message_id, message_id, world.rows[message_id]))
        yield
    if rules.clears_after:
        world.clear(bucket, 0)
        yield
    write.is_done = True
    world.release(job)


def load(world: World, write: Write, ids: Sequence[int], bucket: int, skew_us: int, *, settles: bool) -> Act:
    """Model one load of `importing.channels`. It has a lease, so another job may lock the channel meanwhile."""
    job = world.name_job("import")
    rules = world.rules
    while not world.hold(job, LEASE_US):
        yield
    _, said_at = world.ledger.get(bucket, (None, 0))
    yield
    stamp = world.issue(bucket)
    yield
    if not world.renew(job):
        write.is_over = True
        return
    yield
    wanted = [one for one in ids if one not in world.withdrawn]
    if rules.row_comes_first:
        world.ensure_row(bucket)
        yield
    if rules.clears_before:
        world.clear_at(bucket, max(stamp - SKEW_SECONDS * 1_000_000, said_at + 1))
        yield
    for message_id in wanted:
        world.send(partial(world.insert, message_id, stamp, write))
        yield
    for message_id in [one for one in wanted if one in world.withdrawn]:
        world.send(partial(world.delete, message_id, message_id, stamp))
        yield
    if not world.renew(job) and rules.clears_after:
        world.clear(bucket, skew_us)
    write.is_done = True
    yield
    if settles and world.renew(job):
        read = yield from _read(world, bucket)
        world.set_live(bucket, read)
        yield
    world.release(job)
