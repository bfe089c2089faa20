"""Purges whose copies are erased by two people."""

from __future__ import annotations

from django.contrib.auth.models import User

from chatstore.domain.buckets import bucket_of
from chatstore.models import Channel
from chatstore.store import cassandra
from moderation.models import Erasure, Purge
from moderation.operations.erasure.requests import approve_erase, ask_erase
from tests.moderation.rooms import everything, old_ids, purge_now, write

KEPT = "SELECT attempt FROM quarantine WHERE purge_id = ? AND channel_id = ? AND bucket = ?"


def removed(mona: User, channel: Channel, *, count: int = 20) -> Purge:
    """Purge a whole channel of old messages to the end."""
    write(channel, old_ids(count))
    return purge_now(mona, everything(channel))


def kept(purge: Purge, channel: Channel, *, count: int = 20) -> int:
    """Return the number of chunks, over all replicas, that the purge keeps of those messages."""
    place = (purge.pk, channel.pk, bucket_of(old_ids(count)[0]))
    return len(cassandra.execute(KEPT, place, consistency=cassandra.ALL))


def approved(purge: Purge, asker: User, approver: User) -> Erasure:
    """Request an erasure as one user and approve it as the other."""
    wish = ask_erase(purge.pk, moderator=asker, reason="request 71")
    return approve_erase(purge.pk, wish.pk, moderator=approver)


def state_of(purge: Purge) -> str:
    """Return the state stored in Postgres."""
    purge.refresh_from_db()
    return purge.state
