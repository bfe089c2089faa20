"""Verifying a bucket that somebody names: all of it is read once, and the ledger told what lives there.

The channel is held meanwhile, as by every job that tells the ledger; by lease, so that a worker that
dies keeps nobody waiting. Whatever a worker tells that slept past its lease is older than a later job's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.operations.bookkeeping import settle_bucket
from chatstore.operations.channel_lock import hold_channel, holder_of, release_channel, renew_hold
from chatstore.operations.leases import renewed
from chatstore.operations.probes import read_bucket
from chatstore.operations.runs import Claim
from chatstore.store import ledger

HOLD_SECONDS = 30.0
RENEW_SECONDS = 5.0


class ChannelIsHeld(ChatstoreError):
    """Another job has the channel; trying again when it is done will help."""


def verify_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """The job "verify": what lives in a bucket ("<channel>:<bucket>") is read, and the ledger told.

    Raises `ChannelIsHeld`, `BadInput` for a bucket that was never written, `StoreUnavailable`.
    """
    channel_id, bucket = read_bucket(claim.run.subject)
    if ledger.read_live(channel_id, bucket) is None:
        raise BadInput("Nothing was ever written there, so there is nothing to verify.")
    job = f"verify:{claim.run.pk}"
    if not hold_channel(channel_id, job=job, lease_seconds=HOLD_SECONDS):
        holder = holder_of(channel_id) or "another job"
        raise ChannelIsHeld(f"The channel is held by {holder.replace(':', ' ')}. Try again when that is done.")
    renew = partial(renew_hold, channel_id, job=job, lease_seconds=HOLD_SECONDS)
    try:
        with renewed(renew, every_seconds=RENEW_SECONDS):
            live = settle_bucket(channel_id, bucket, job=job)
    finally:
        release_channel(channel_id, job=job)
    return {"empty": live.is_nothing} if live.count is None or live.is_nothing else {"rows": live.count}
