"""Cassandra's tables, declared for `sync_cassandra` (which creates and adds, never alters or drops).

Every collection is frozen, since an unfrozen one writes a tombstone at each insert; the exception is a set that is only
appended to.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cassandra.cqlengine import columns
from django_cassandra_engine.models import DjangoCassandraModel

MESSAGES_GC_GRACE_SECONDS = 172_800
"""Two days: a nightly repair has two attempts before a tombstone may be dropped."""

QUARANTINE_TTL_SECONDS = 31 * 86_400
"""A day longer than undo is offered, so that the last undo still finds all copies."""

_COMPACTION_TIME_WINDOW = {
    "class": "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy",
    "compaction_window_unit": "DAYS",
    "compaction_window_size": "1",
}


class FrozenTuple(columns.Tuple):  # type: ignore[misc]
    """A tuple column declared as `frozen<>`.

    Cassandra freezes tuples anyway; without the keyword a second sync warns of a different type.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freeze_db_type()


class MessageRow(DjangoCassandraModel):  # type: ignore[misc]
    """A message; a partition contains ten days of a channel."""

    __table_name__ = "messages"
    __options__: ClassVar[dict[str, Any]] = {"gc_grace_seconds": MESSAGES_GC_GRACE_SECONDS}

    channel_id = columns.BigInt(partition_key=True)
    bucket = columns.Integer(partition_key=True)
    message_id = columns.BigInt(primary_key=True, clustering_order="DESC")
    author_id = columns.BigInt()
    type = columns.Integer()
    content = columns.Text()
    edited_at = columns.DateTime()
    flags = columns.Integer()
    pinned = columns.Boolean()
    webhook_id = columns.BigInt()
    author_name = columns.Text()
    attachments = columns.List(columns.Text(), frozen=True)
    embeds = columns.List(columns.Text(), frozen=True)
    stickers = columns.List(columns.Text(), frozen=True)
    reactions = columns.Map(columns.Text(), columns.Integer(), frozen=True)
    mentions = columns.List(columns.BigInt(), frozen=True)
    reference = FrozenTuple(columns.BigInt(), columns.BigInt())

    class Meta:
        get_pk_field = "channel_id"


class BucketLedgerRow(DjangoCassandraModel):  # type: ignore[misc]
    """Buckets of a channel that contain messages, with the bounds of their live ids; never deleted."""

    __table_name__ = "bucket_ledger"

    channel_id = columns.BigInt(partition_key=True)
    bucket = columns.Integer(primary_key=True, clustering_order="DESC")
    live = FrozenTuple(columns.BigInt(), columns.BigInt(), columns.Integer())

    class Meta:
        get_pk_field = "channel_id"


class BucketFigureRow(DjangoCassandraModel):  # type: ignore[misc]
    """One measured figure of a bucket, with its source and time."""

    __table_name__ = "bucket_figures"

    channel_id = columns.BigInt(partition_key=True)
    bucket = columns.Integer(primary_key=True, clustering_order="DESC")
    figure = columns.Text(primary_key=True)
    value = columns.BigInt()
    source = columns.Text()
    measured_at = columns.DateTime()

    class Meta:
        get_pk_field = "channel_id"


class AuthorBucketRow(DjangoCassandraModel):  # type: ignore[misc]
    """Index of where an author has posted: a row per author, bucket and channel."""

    __table_name__ = "author_buckets"

    author_id = columns.BigInt(partition_key=True)
    bucket = columns.Integer(primary_key=True, clustering_order="DESC")
    channel_id = columns.BigInt(primary_key=True)

    class Meta:
        get_pk_field = "author_id"


class QuarantineRow(DjangoCassandraModel):  # type: ignore[misc]
    """A chunk of deleted messages, kept for undo: at most 1,000 messages and 1 MiB, zstd.

    `attempt` is the stamp (write timestamp in µs) of the read that filled it, so no two attempts share one.
    """

    __table_name__ = "quarantine"
    __options__: ClassVar[dict[str, Any]] = {
        "default_time_to_live": QUARANTINE_TTL_SECONDS,
        "gc_grace_seconds": 86_400,
        "compaction": _COMPACTION_TIME_WINDOW,
    }

    purge_id = columns.BigInt(partition_key=True)
    channel_id = columns.BigInt(partition_key=True)
    bucket = columns.Integer(partition_key=True)
    attempt = columns.BigInt(primary_key=True)
    chunk = columns.Integer(primary_key=True)
    message_count = columns.Integer()
    first_id = columns.BigInt()
    last_id = columns.BigInt()
    body = columns.Blob()

    class Meta:
        get_pk_field = "purge_id"


class WithdrawnRow(DjangoCassandraModel):  # type: ignore[misc]
    """A message that its own author deleted, kept forever; undo and import skip it.

    author_id: the author, who deleted the message while it existed. claimed_by: users who withdrew it when it was gone.
    A claim is honoured only if the claimant turns out to be the author. Rows written before these columns existed have
    neither and are always honoured.
    """

    __table_name__ = "withdrawn"

    channel_id = columns.BigInt(partition_key=True)
    bucket = columns.Integer(partition_key=True)
    message_id = columns.BigInt(primary_key=True)
    author_id = columns.BigInt()
    claimed_by = columns.Set(columns.BigInt())

    class Meta:
        get_pk_field = "channel_id"


class PinRow(DjangoCassandraModel):  # type: ignore[misc]
    """A pinned message; readers drop ids of messages that are gone."""

    __table_name__ = "pins"

    channel_id = columns.BigInt(partition_key=True)
    message_id = columns.BigInt(primary_key=True, clustering_order="DESC")

    class Meta:
        get_pk_field = "channel_id"


DEFAULT_GC_GRACE_SECONDS = 864_000
"""Cassandra's default: ten days."""

TABLES: dict[str, int] = {
    model.__table_name__: (model.__options__ or {}).get("gc_grace_seconds", DEFAULT_GC_GRACE_SECONDS)
    for model in (
        MessageRow,
        BucketLedgerRow,
        BucketFigureRow,
        AuthorBucketRow,
        QuarantineRow,
        WithdrawnRow,
        PinRow,
    )
}
"""Every table with its declared gc_grace (s)."""
