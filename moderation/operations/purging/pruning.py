"""Pruning: deletes data of old previews, purges and runs that is no longer needed. The audit log is never pruned.

- A preview that was not confirmed keeps its row, to which the audit log refers, but not its steps and its manifest.
- A purge that can no longer be undone keeps its steps, which explain what became of a message, but not its manifest.
  It is kept while a hold covers some of its messages.
- Sessions that have expired.
- Runs of maintenance jobs: see `chatstore.operations.jobs.pruning`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.functions import ClockTimestamp
from chatstore.operations.jobs.pruning import prune_runs
from chatstore.operations.jobs.runs import Claim
from moderation.domain.states import PurgeState
from moderation.models import ManifestBucket, ManifestSummary, Purge, Step
from moderation.operations.access.sessions import delete_expired_sessions
from moderation.operations.holds import hold_over_purge

NEVER_CONFIRMED = (PurgeState.EXPIRED, PurgeState.NOTHING_MATCHED)
WITHOUT_UNDO = (PurgeState.UNDO_EXPIRED, PurgeState.ERASED)
"""Final states, so that nothing needs the rows while they are deleted."""

MANIFEST = (ManifestSummary, ManifestBucket)


def prune(claim: Claim) -> Mapping[str, int]:
    """Delete old rows; return counts by name. Idempotent: it can be killed and started again at any point."""
    previews = _prune(claim, _old_previews(), Step, *MANIFEST)
    unheld = (purge for purge in _old_purges().iterator() if hold_over_purge(purge) is None)
    manifests = _prune(claim, unheld, *MANIFEST)
    runs = prune_runs(check=claim.check)
    return {"previews": previews, "manifests": manifests, "runs": runs, "sessions": delete_expired_sessions()}


def _prune(
    claim: Claim, purges: Iterator[Purge] | QuerySet[Purge], *models: type[Step | ManifestBucket | ManifestSummary]
) -> int:
    count = 0
    for count, purge in enumerate(purges, start=1):
        for model in models:
            rows = model.objects.filter(purge_id=purge.pk)
            rows._raw_delete(rows.db)
        claim.report_progress(done=count, total=None, what=_("purges"))
    return count


def _old_previews() -> QuerySet[Purge]:
    steps = Step.objects.filter(purge_id=OuterRef("pk"))
    old = _created_before(settings.PREVIEW_DAYS).filter(state__in=NEVER_CONFIRMED, confirmed_at=None)
    return old.filter(Q(Exists(steps)) | _has_manifest())


def _old_purges() -> QuerySet[Purge]:
    return _created_before(settings.MANIFEST_DAYS).filter(_has_manifest(), state__in=WITHOUT_UNDO)


def _created_before(days: int) -> QuerySet[Purge]:
    return Purge.objects.filter(created_at__lt=ClockTimestamp() - dt.timedelta(days=days)).order_by("id")


def _has_manifest() -> Q:
    here = {"purge_id": OuterRef("pk")}
    return Q(Exists(ManifestBucket.objects.filter(**here))) | Q(Exists(ManifestSummary.objects.filter(**here)))
