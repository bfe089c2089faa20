"""Verifying a bucket that somebody names: all of it is read once, and the ledger told what lives there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.operations.coordination.channel_lock import holder_of
from chatstore.operations.health.probes import read_bucket
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.refresh import look_at_bucket
from chatstore.store import ledger

TRIES = 3
PAUSE_SECONDS = 5.0
"""Between two tries: most jobs have a channel for seconds."""


class ChannelIsHeld(ChatstoreError):
    """Another job has the channel; trying again when it is done will help."""


def verify_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """The job "verify": what lives in a bucket ("<channel>:<bucket>") is read, and the ledger told.

    Raises `ChannelIsHeld`, `BadInput` for a bucket that was never written, `StoreUnavailable`.
    """
    channel_id, bucket = read_bucket(claim.run.subject)
    if ledger.read_live(channel_id, bucket) is None:
        raise BadInput("Nothing was ever written there, so there is nothing to verify.")
    for tried in range(TRIES):
        if tried:
            claim.tell(done=0, total=1, what="waiting for another job to give the channel back")
            time.sleep(PAUSE_SECONDS)
        look = look_at_bucket(channel_id, bucket, job=f"verify:{claim.run.pk}", between_pages=claim.look)
        if look is not None:
            return {"messages": look.read.authored, "pages": "pass it by" if look.live.is_nothing else "ask it"}
    holder = holder_of(channel_id) or "another job"
    raise ChannelIsHeld(f"The channel is held by {holder.replace(':', ' ')}. Try again when that is done.")
