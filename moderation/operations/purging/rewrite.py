"""Rewriting of survivors: inside a range before it is deleted, or later to bring a bucket back into its budget.

A survivor is written at T + 1 µs before the range is deleted at T, on every replica. An edit before or after takes
precedence because it is newer; an author's own delete persists, for the same reason. A crash leaves survivors that
were written twice: the rows are the same.

The rows come from the read at R0, buffered packed in the worker's memory. A worker that takes over the step, or had
no memory left for them, reads the rows a second time. Both are correct, because anything that a second read could see
and the first did not takes precedence over T + 1 µs by itself:
- Users' posts, edits and deletes are stamped by clocks at most 5 s off and abandoned 4 s later, so a write that
  arrives after R0 is stamped after R0 - 9 s, and T is R0 - 10 s.
- Undos, imports and other purges don't write there meanwhile: the channel is locked.
- Other steps of the same purge delete other ids, none of which is inside a range.
A write that failed for its sender but reached one replica may or may not be seen by either read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from chatstore.domain.buckets import bucket_ids, is_sealed
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.messages import MESSAGE_ID
from chatstore.domain.milliseconds import MINUTE_MS, time_at
from chatstore.domain.snowflakes import ms_of
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.store import scans
from chatstore.store.cassandra import ALL
from moderation.domain.chunks import PackedRows, Row
from moderation.domain.packing import unpack_ids
from moderation.domain.states import PurgeState, StepKind
from moderation.models import Purge, Step
from moderation.operations.access.audit import save_with_next_id
from moderation.store.pace import Pace
from moderation.store.restores import write_rows

REWRITE_AFTER_MS = 70 * MINUTE_MS
"""Delay after the newest matched id. By then all ids are over an hour old, and no client's retries can still arrive."""

ROWS_PER_CHECK = 500
"""Rows written between two checks of the purge's state; a page of the read has thousands."""

DENSE_RATIO = 8
"""Minimum density, one survivor in this many rows: an IN of 100 ids costs as much as a slice of 800 rows."""


def rewrite_survivors(step: Step, pace: Pace, *, survivor_rows: PackedRows | None, check: Callable[[], None]) -> None:
    """Rewrite the survivors inside the step's ranges and read them back.

    survivor_rows: the rows that the step's own read returned; may contain others. check: called every few rows;
    exceptions stop the rewrite. Raises `StoreUnavailable` if a replica is down or a survivor is not as written.
    Nothing was deleted then.
    """
    ids = unpack_ids(step.survivors)
    if not ids or step.delete_stamp is None:
        return
    stamp = step.delete_stamp + 1
    # When survivors are dense, one range read is faster than point reads.
    is_dense = len(ids) * DENSE_RATIO >= len(ids) + step.count
    if survivor_rows is not None and survivor_rows.is_whole:
        rows = _only(survivor_rows, frozenset(ids))
    else:
        rows = scans.read_rows(step.channel_id, step.bucket, ids, dense=is_dense)
    write_rows(
        step.channel_id, step.bucket, _checked(rows, check), stamp_of=lambda _: stamp, pace=pace, consistency=ALL
    )
    for page in scans.read_oldest_writetimes(step.channel_id, step.bucket, ids, dense=is_dense):
        check()
        pace.throttle()
        older = [message_id for message_id, oldest in page if oldest < stamp]
        if older:
            raise StoreUnavailable(
                ngettext_lazy(
                    "%(count)s message to keep could not be rewritten yet.",
                    "%(count)s messages to keep could not be rewritten yet.",
                    len(older),
                )
            )


def _only(pages: Iterable[list[Row]], ids: frozenset[int]) -> Iterator[list[Row]]:
    return ([row for row in page if row[MESSAGE_ID] in ids] for page in pages)


def _checked(pages: Iterator[list[Row]], check: Callable[[], None]) -> Iterator[list[Row]]:
    for page in pages:
        for start in range(0, len(page), ROWS_PER_CHECK):
            check()
            yield page[start : start + ROWS_PER_CHECK]


def queue_rewrite(step: Step, *, now_ms: int) -> None:
    """Queue a rewrite for a bucket that was left over its budget, once per bucket.

    A rewrite that could not bring the bucket into its budget because it was still open is followed by one of the
    sealed bucket. Called in the transaction that counts the step.
    """
    if step.kind == StepKind.REWRITE and is_sealed(step.bucket, now_ms=now_ms):
        return
    if step.kind != StepKind.REWRITE and not step.count:
        # Stopped before its first delete; its ids belong to another step now.
        return
    queued = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, kind=StepKind.REWRITE)
    if queued.open().exclude(purge_id=step.purge_id).exists():
        return
    newest = bucket_ids(step.bucket)[1] if step.kind == StepKind.REWRITE else unpack_ids(step.ids)[-1]
    create_rewrite(
        step.channel_id,
        step.bucket,
        ids=step.ids,
        selection=step.purge.selection,
        moderator=step.purge.moderator,
        reason=_("purge %(id)s left more tombstones than the budget", id=str(step.purge_id)),
        due_at=time_at(ms_of(newest) + REWRITE_AFTER_MS),
        wait_reason=_("Waiting until 70 minutes after the newest deleted message, when the bucket is rewritten"),
    )


def create_rewrite(
    channel_id: int,
    bucket: int,
    *,
    ids: bytes | memoryview,
    selection: dict[str, Any],
    moderator: User,
    reason: str,
    due_at: dt.datetime | None = None,
    wait_reason: str = "",
) -> Purge:
    """Create a purge that rewrites one bucket. ids: previously deleted there, packed. Call in a transaction."""
    purge = Purge(
        is_rewrite=True,
        state=PurgeState.QUEUED,
        selection=selection,
        moderator=moderator,
        reason=reason,
        confirmed_at=ClockTimestamp(),
    )
    save_with_next_id(purge)
    Step.objects.create(
        purge_id=purge.pk,
        ordinal=1,
        channel_id=channel_id,
        bucket=bucket,
        kind=StepKind.REWRITE,
        ids=ids,
        count=0,
        due_at=due_at,
        wait_reason=wait_reason,
    )
    return purge
