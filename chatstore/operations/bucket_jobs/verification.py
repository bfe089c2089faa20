"""Verification of a bucket on request: read it completely and refresh its ledger row."""

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
"""Delay between two attempts; most jobs lock a channel for seconds."""


class ChannelIsHeld(ChatstoreError):
    """Another job has locked the channel; retrying later helps."""


def verify_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "verify": read a bucket ("<channel>:<bucket>") and refresh its ledger row.

    Raises `ChannelIsHeld`, `BadInput` for a bucket that was never written, `StoreUnavailable`.
    """
    channel_id, bucket = read_bucket(claim.run.subject)
    if ledger.read_live(channel_id, bucket) is None:
        raise BadInput("Nothing was ever written to this bucket, so there is nothing to verify.")
    for tried in range(TRIES):
        if tried:
            claim.tell(done=0, total=1, what="waiting for another job to release the channel")
            time.sleep(PAUSE_SECONDS)
        look = look_at_bucket(channel_id, bucket, job=f"verify:{claim.run.pk}", between_pages=claim.look)
        if look is not None:
            return {"messages": look.read.authored, "pages": "skip it" if look.live.is_nothing else "read it"}
    holder = holder_of(channel_id) or "another job"
    raise ChannelIsHeld(f"The channel is locked by {holder.replace(':', ' ')}. Try again when that is done.")
