"""Detection of missing survivors: messages that a purge should have kept but that no longer exist.

Messages that their author withdrew, or that another manifest deleted, are missing on purpose. Anything else that is
missing after a step rewrote it is a loss that a person must investigate.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from chatstore.domain.buckets import bucket_days
from chatstore.domain.runs import Severity
from chatstore.domain.texts import Days, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.operations.findings.channels import MISSING_SURVIVORS
from chatstore.operations.findings.records import Problem, open_finding
from chatstore.store import withdrawn
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING
from moderation.models import Step
from moderation.operations.steps.deleted_ids import deleted_ids

logger = logging.getLogger(__name__)

MAX_LISTED_IDS = 100
"""Maximum number of ids in a finding's details; enough to see what they have in common."""


def unexplained(step: Step, missing: Collection[int]) -> list[int]:
    """Return the missing ids that nothing accounts for, ascending. Call after the read that missed them.

    Raises `StoreUnavailable`.
    """
    if not missing:
        return []
    unexplained_ids = set(missing).difference(withdrawn.read_withdrawals(step.channel_id, step.bucket).certain)
    here = Step.objects.filter(channel_id=step.channel_id, bucket=step.bucket, kind__in=DELETING)
    other_deletes = here.partly_applied().exclude(purge_id=step.purge_id, ordinal=step.ordinal)
    for ids in other_deletes.values_list("ids", flat=True):
        unexplained_ids.difference_update(unpack_ids(ids))
    # Restored messages were live again when this step began.
    return sorted(unexplained_ids - deleted_ids(step.channel_id, step.bucket))


def _finding_key(step: Step) -> str:
    """Return the finding's key.

    Each step's loss is its own finding, so that a second one in the bucket is reported too.
    """
    return f"{step.channel_id}:{step.bucket}:{step.purge_id}.{step.ordinal}"


def report_missing(step: Step, lost: Sequence[int]) -> None:
    """Open a finding for ids that nothing accounts for; in the transaction that counts the step."""
    if not lost:
        return
    channel = Channel.objects.select_related("guild").filter(id=step.channel_id).first()
    message = ngettext_lazy(
        "%(count)s message that should have been kept is missing after a purge in %(channel)s, %(days)s.",
        "%(count)s messages that should have been kept are missing after a purge in %(channel)s, %(days)s.",
        len(lost),
        channel=channel.full_name if channel else _("channel %(id)s", id=str(step.channel_id)),
        days=Days(*bucket_days(step.bucket)),
    )
    details = {
        "channel": str(step.channel_id),
        "bucket": step.bucket,
        "purge": str(step.purge_id),
        "count": len(lost),
        "messages": [str(message_id) for message_id in lost[:MAX_LISTED_IDS]],
    }
    open_finding(MISSING_SURVIVORS, _finding_key(step), Problem(Severity.CRITICAL, message, details))
    logger.error("purge %s, bucket %s: %s survivors missing", step.purge_id, step.bucket, len(lost))
