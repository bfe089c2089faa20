"""Django models of the store: Postgres tables, and the declarations of Cassandra's tables.

The Cassandra models only declare the schema for `sync_cassandra`; statements are in `store`.
"""

from chatstore.models.cassandra import (
    AuthorBucketRow,
    BucketFigureRow,
    BucketLedgerRow,
    MessageRow,
    PinRow,
    QuarantineRow,
    WithdrawnRow,
)
from chatstore.models.chat import Channel, ChatUser, Guild, GuildMember, GuildRole
from chatstore.models.jobs import BucketStamp, ChannelLock, WorkerLease
from chatstore.models.maintenance import BucketDeletes, ChannelDay, ChannelSummary, Finding, JobRun, JobSchedule
from chatstore.models.reports import Report, ReportCase
from chatstore.models.roles import RoleGrant

__all__ = [
    "AuthorBucketRow",
    "BucketDeletes",
    "BucketFigureRow",
    "BucketLedgerRow",
    "BucketStamp",
    "Channel",
    "ChannelDay",
    "ChannelLock",
    "ChannelSummary",
    "ChatUser",
    "Finding",
    "Guild",
    "GuildMember",
    "GuildRole",
    "JobRun",
    "JobSchedule",
    "MessageRow",
    "PinRow",
    "QuarantineRow",
    "Report",
    "ReportCase",
    "RoleGrant",
    "WithdrawnRow",
    "WorkerLease",
]
