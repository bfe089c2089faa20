"""Verification of a bucket on request: read it completely and refresh its ledger row."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.operations.coordination.channel_lock import ChannelLocked, lock_owner
from chatstore.operations.health.measured import show_measured
from chatstore.operations.health.probes import parse_bucket_subject
from chatstore.operations.jobs.runs import Claim
from chatstore.operations.ledger.refresh import try_refresh_bucket
from chatstore.store import ledger

MAX_ATTEMPTS = 3
RETRY_DELAY_SECONDS = 5.0
"""Delay between two attempts; most jobs lock a channel for seconds."""


def verify_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "verify": read a bucket ("<channel>:<bucket>") and refresh its ledger row.

    Raises `ChannelLocked`, `BadInput` for a bucket that was never written, `StoreUnavailable`.
    """
    channel_id, bucket = parse_bucket_subject(claim.run.subject)
    if ledger.read_live(channel_id, bucket) is None:
        raise BadInput(_("Nothing was ever written to this bucket, so there is nothing to verify."))
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            claim.report_progress(done=0, total=1, what=_("waiting for another job to release the channel"))
            time.sleep(RETRY_DELAY_SECONDS)
        bucket_read = try_refresh_bucket(channel_id, bucket, job=f"verify:{claim.run.pk}", between_pages=claim.check)
        if bucket_read is not None:
            show_measured(channel_id)
            return {
                "messages": bucket_read.read.authored,
                "pages": "skip it" if bucket_read.live.is_empty else "read it",
            }
    owner = lock_owner(channel_id)
    if owner is None:
        raise ChannelLocked(_("The channel is locked by another job. Try again when that is done."))
    raise ChannelLocked(
        _("The channel is locked by %(job)s. Try again when that is done.", job=owner.replace(":", " "))
    )
