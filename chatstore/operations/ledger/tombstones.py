"""Tombstones of buckets that need not be counted again, because nothing was deleted there since they were counted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from django.conf import settings

from chatstore.domain.buckets import BucketKey
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.ledger.delete_log import last_deletes
from chatstore.operations.ledger.refresh import PURGE_ESTIMATE, PURGE_SOURCE, SOURCE
from chatstore.store.figures import Figure, read_figures_in

TRUSTED_SOURCES = frozenset({SOURCE, PURGE_SOURCE, PURGE_ESTIMATE})
"""Sources that never report too few. The first two were counted in a quorum read of the whole bucket."""

MAX_AGE = dt.timedelta(days=1)
"""Older counts are not trusted: records of deletes are pruned, after gc_grace and a repair."""


def known_tombstones(keys: Sequence[BucketKey]) -> dict[BucketKey, int]:
    """Return the tombstones, at most, of those buckets in which nothing was deleted since they were counted.

    None is known if other programs delete too, because their deletes are not recorded.
    """
    if not settings.CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN:
        return {}
    now, deleted_at = postgres_now(), last_deletes(keys)
    found = read_figures_in({channel_id for channel_id, _ in keys})
    known = ((key, _known(found.get(key, {}), deleted_at.get(key), now)) for key in keys)
    return {key: tombstones for key, tombstones in known if tombstones is not None}


def _known(figures: Mapping[str, Figure], deleted_at: dt.datetime | None, now: dt.datetime) -> int | None:
    counted = figures.get("tombstones")
    if counted is None or counted.source not in TRUSTED_SOURCES:
        return None
    if now - counted.measured_at > MAX_AGE:
        return None
    # Cassandra stores the time of the count in milliseconds.
    is_current = deleted_at is None or _in_milliseconds(deleted_at) <= counted.measured_at
    return counted.value if is_current else None


def _in_milliseconds(time: dt.datetime) -> dt.datetime:
    return time.replace(microsecond=time.microsecond // 1_000 * 1_000)
