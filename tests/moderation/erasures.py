"""Purges whose copies are erased, by two people."""

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
    """A purge of a whole channel of old messages, done."""
    write(channel, old_ids(count))
    return purge_now(mona, everything(channel))


def kept(purge: Purge, channel: Channel, *, count: int = 20) -> int:
    """Chunks that it keeps of what `removed` removed, on any replica."""
    place = (purge.pk, channel.pk, bucket_of(old_ids(count)[0]))
    return len(cassandra.execute(KEPT, place, consistency=cassandra.ALL))


def approved(purge: Purge, asker: User, approver: User) -> Erasure:
    """One asks, the other approves."""
    wish = ask_erase(purge.pk, moderator=asker, reason="request 71")
    return approve_erase(purge.pk, wish.pk, moderator=approver)


def state_of(purge: Purge) -> str:
    """As it is in Postgres now."""
    purge.refresh_from_db()
    return purge.state
