"""Channel locks: a row in Postgres names the one job that has locked a channel.

The lock of a purge does not expire, because its steps have their own leases. Imports and other jobs without
steps lock with a lease and renew it. Locking twice has no further effect.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection
from django.db.models import QuerySet

from chatstore.domain.errors import ChatstoreError
from chatstore.models import ChannelLock

_TABLE = ChannelLock._meta.db_table
_LEASE = "clock_timestamp() + make_interval(secs => %s::double precision)"
_EXPIRED = f"{_TABLE}.lease_until < clock_timestamp()"
_TAKE = (
    "ON CONFLICT (channel_id) DO UPDATE SET job = EXCLUDED.job, lease_until = EXCLUDED.lease_until, "
    f"since = CASE WHEN {_TABLE}.job = EXCLUDED.job THEN {_TABLE}.since ELSE EXCLUDED.since END "
    f"WHERE {_TABLE}.job = EXCLUDED.job OR {_EXPIRED}"
)
_LOCK = (
    f"INSERT INTO {_TABLE} (channel_id, job, since, lease_until) "
    f"VALUES (%s, %s, clock_timestamp(), {_LEASE}) {_TAKE} RETURNING job"
)
# Rows are locked in the order of their ids, and rows of other jobs are not locked at all, so that neither two
# of these statements, nor one and a purge that is releasing its channels, block each other.
_LOCK_MANY = (
    f"INSERT INTO {_TABLE} (channel_id, job, since, lease_until) "
    f"SELECT wanted, %s, clock_timestamp(), {_LEASE} FROM unnest(%s::bigint[]) AS wanted "
    f"WHERE NOT EXISTS (SELECT FROM {_TABLE} WHERE channel_id = wanted AND job <> %s AND ({_EXPIRED}) IS NOT TRUE) "
    f"ORDER BY wanted {_TAKE} RETURNING channel_id"
)
_RENEW = f"UPDATE {_TABLE} SET lease_until = {_LEASE} WHERE channel_id = %s AND job = %s RETURNING job"
_RENEW_MANY = (
    f"UPDATE {_TABLE} SET lease_until = {_LEASE} WHERE channel_id IN (SELECT channel_id FROM {_TABLE} "
    "WHERE channel_id = ANY(%s) AND job = %s ORDER BY channel_id FOR UPDATE) RETURNING channel_id"
)
_OWNERS = f"SELECT channel_id, job FROM {_TABLE} WHERE channel_id = ANY(%s) AND ({_EXPIRED}) IS NOT TRUE"


class ChannelLocked(ChatstoreError):
    """Another job has locked the channel. A retry after that job has ended can succeed."""


def lock_channel(channel_id: int, *, job: str, lease_seconds: float | None = None) -> bool:
    """Lock the channel for a job; return True also if the job has already locked it.

    Without `lease_seconds` the lock lasts until it is released. An expired lease is taken over.
    """
    return bool(_run(_LOCK, (channel_id, job, lease_seconds)))


def lock_channels(channel_ids: Collection[int], *, job: str, lease_seconds: float | None = None) -> frozenset[int]:
    """Lock channels, as `lock_channel` does, in one statement; return those that the job has locked now."""
    rows = _run(_LOCK_MANY, (job, lease_seconds, list(channel_ids), job)) if channel_ids else []
    return frozenset(int(str(row[0])) for row in rows)


def renew_lock(channel_id: int, *, job: str, lease_seconds: float) -> bool:
    """Extend the lease of a job; return False if the channel is no longer locked by it."""
    return bool(_run(_RENEW, (lease_seconds, channel_id, job)))


def renew_locks(channel_ids: Collection[int], *, job: str, lease_seconds: float) -> frozenset[int]:
    """Extend the leases of a job in one statement; return the channels that are still locked by it."""
    rows = _run(_RENEW_MANY, (lease_seconds, list(channel_ids), job))
    return frozenset(int(str(row[0])) for row in rows)


def release_channel(channel_id: int, *, job: str) -> None:
    """Release the channel; locks of other jobs are left unchanged."""
    ChannelLock.objects.filter(channel_id=channel_id, job=job).delete()


def release_channels(channel_ids: Collection[int], *, job: str) -> None:
    """Release channels, as `release_channel` does."""
    release_locks(ChannelLock.objects.filter(channel_id__in=channel_ids, job=job))


def release_locks(locks: QuerySet[ChannelLock]) -> None:
    """Delete locks in one statement; `delete()` first loads them, and then deletes a hundred at a time."""
    locks._raw_delete(locks.db)


def lock_owner(channel_id: int) -> str | None:
    """Return the job that has locked the channel, or None."""
    return lock_owners([channel_id]).get(channel_id)


def lock_owners(channel_ids: Collection[int]) -> dict[int, str]:
    """Return the job that has locked each channel, in one statement; channels that are not locked are left out."""
    return {int(str(channel_id)): str(job) for channel_id, job in _run(_OWNERS, (list(channel_ids),))}


def _run(sql: str, params: tuple[int | float | str | list[int] | None, ...]) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
