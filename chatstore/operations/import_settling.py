"""After a channel's import: what lives in its buckets is counted, and the ledger told where it may be."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping

from django.conf import settings

from chatstore.operations.bookkeeping import SOURCE, settle_bucket
from chatstore.operations.clock import postgres_now_us
from chatstore.store.ledger import CACHE_SECONDS
from chatstore.store.loads import count_live_in, note_live_rows_in


def settle_imported(
    channel_id: int, cleared_at: Mapping[int, float], *, renew: Callable[[], None], job: str
) -> None:
    """Settle the buckets of an import that holds the channel.

    cleared_at: each bucket's last clear, by `time.monotonic()`. What the ledger is told is
    stamped ten seconds before its read and loses to a clear since; of buckets that were
    cleared later only the count is noted, and their `live` stays "not known".
    """
    if not cleared_at:
        return
    settled_before = time.monotonic() - settings.CLOCK_SKEW_SECONDS
    recent = sorted(bucket for bucket, at in cleared_at.items() if at >= settled_before)
    for bucket in sorted(cleared_at.keys() - set(recent)):
        renew()
        settle_bucket(channel_id, bucket, job=job)
    renew()
    measured_at = dt.datetime.fromtimestamp(postgres_now_us() / 1e6, tz=dt.UTC)
    counts = count_live_in(channel_id, recent)
    note_live_rows_in(channel_id, counts, source=SOURCE, measured_at=measured_at)


def wait_for_pages(last_clear: float | None) -> None:
    """Wait until no page uses ledger rows from before the last clear (`time.monotonic()`)."""
    if last_clear is not None:
        time.sleep(max(0.0, last_clear + CACHE_SECONDS - time.monotonic()))
