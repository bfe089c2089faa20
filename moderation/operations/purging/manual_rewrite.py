"""Manual rewrite of a bucket, requested by an operator: like a rewrite that follows a purge, but without ids.

Live rows are rewritten above one delete of everything older, which removes all tombstones below it. The purge engine
runs the steps, with their stamps, channel lock and checks; see `rewrite`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from chatstore.domain.errors import BadInput, ChatstoreError
from chatstore.domain.texts import as_json
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from chatstore.operations.health.probes import parse_bucket_subject
from chatstore.operations.jobs.runs import Claim, RunStopped
from chatstore.operations.rights import MAINTAIN, require
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.domain.selection import Selection
from moderation.domain.states import ACTIVE_PURGES, PURGE_MOVES, PurgeState
from moderation.models import Purge
from moderation.operations.access.audit import record_action
from moderation.operations.purging.completion import advance_purge
from moderation.operations.purging.rewrite import create_rewrite
from moderation.operations.purging.wait_reasons import WAITING_FOR_WORKER
from moderation.operations.purging.worker import run_purge
from moderation.operations.steps.claiming import brief_transaction, lock_purge

POLL_SECONDS = 2.0
MAX_FOLLOW_SECONDS = 120.0
"""A rewrite that waits longer than this for another job continues in the background, as every purge does."""


class RewriteFailed(ChatstoreError):
    """The step was rejected; the message is its error. Nothing was deleted."""


def rewrite_bucket_run(claim: Claim) -> Mapping[str, Any]:
    """Run the job "rewrite" for a bucket ("<channel>:<bucket>").

    Raises `RewriteFailed`, and what `Claim.report_progress` raises.
    """
    purge_id = claim.run.result.get("rewrite")
    if purge_id is None:
        channel_id, bucket = parse_bucket_subject(claim.run.subject)
        if claim.run.requested_by is None:
            raise BadInput(_("A rewrite must be requested by a user."))
        purge_id = request_rewrite(channel_id, bucket, actor=claim.run.requested_by).pk
        claim.note({"rewrite": purge_id})
    deadline = time.monotonic() + MAX_FOLLOW_SECONDS
    while (purge := run_purge(purge_id, wait_for_channel=False)).state in ACTIVE_PURGES:
        if time.monotonic() > deadline:
            return {"rewrite": purge_id, "still waiting": as_json(purge.wait_reason or WAITING_FOR_WORKER)}
        try:
            claim.report_progress(done=0, total=1, what=purge.wait_reason)
        except RunStopped:
            _stop_rewrite(purge_id)
            raise
        time.sleep(POLL_SECONDS)
    step = purge.steps.get(ordinal=1)
    if step.error:
        raise RewriteFailed(_("The bucket was not rewritten: %(error)s.", error=step.error))
    return {"rewrite": purge_id, "messages rewritten": len(unpack_ids(step.survivors))}


def _stop_rewrite(purge_id: int) -> None:
    """Cancel the rewrite of a stopped run, unless it is stamped. Otherwise beat would run it anyway."""
    with brief_transaction():
        purge = lock_purge(purge_id)
        if PurgeState.CANCELLING not in PURGE_MOVES.get(PurgeState(purge.state), ()):
            return
        Purge.objects.filter(id=purge_id).update(state=PurgeState.CANCELLING, wait_reason="", wait_until=None)
    advance_purge(purge_id)


def request_rewrite(channel_id: int, bucket: int, *, actor: User) -> Purge:
    """Queue a rewrite of a bucket. Raises `Forbidden`. The caller runs it; otherwise beat enqueues it."""
    require(actor, MAINTAIN)
    with transaction.atomic():
        purge = create_rewrite(
            channel_id,
            bucket,
            ids=pack_ids(()),
            selection=Selection(channel_ids=(channel_id,), everything=True).as_json(),
            moderator=actor,
            reason=_("manual rewrite of the bucket"),
        )
        details = {"bucket": bucket}
        record_action("rewrite_requested", actor=actor, purge=purge, channel_id=channel_id, details=details)
    return purge
