"""Purges whose copies are erased by two people."""

from __future__ import annotations

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.models.users import User
from chatstore.store import cassandra
from moderation.models import Erasure, Purge
from moderation.operations.erasure.requests import approve_erasure, request_erasure
from tests.moderation.channels import everything, old_ids, purge_now, write

SELECT_CHUNKS = "SELECT attempt FROM quarantine WHERE purge_id = ? AND channel_id = ? AND bucket = ?"


def finished_purge(mona: User, channel: Channel, *, count: int = 20) -> Purge:
    """Purge a whole channel of old messages to the end."""
    write(channel, old_ids(count))
    return purge_now(mona, everything(channel))


def chunks_kept(purge: Purge, channel: Channel, *, count: int = 20) -> int:
    """Return the number of chunks, over all replicas, that the purge keeps of those messages."""
    place = (purge.pk, channel.pk, bucket_of(old_ids(count)[0]))
    return len(cassandra.execute(SELECT_CHUNKS, place, consistency=cassandra.ALL))


def request_and_approve(purge: Purge, asker: User, approver: User) -> Erasure:
    """Request an erasure as one user and approve it as the other."""
    request = request_erasure(purge.pk, moderator=asker, reason="request 71")
    return approve_erasure(purge.pk, request.pk, moderator=approver)


def state_of(purge: Purge) -> str:
    """Return the state stored in Postgres."""
    purge.refresh_from_db()
    return purge.state
