"""Pruning of runs: the history of maintenance jobs is kept for a while, not forever."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from chatstore.models import JobRun
from chatstore.models.functions import ClockTimestamp

KEPT_RUNS = 30
"""Runs of each job that are kept whatever their age: monitoring and the pages of jobs refer to the last ones."""

RUNS_AT_ONCE = 2_000


def prune_runs(*, check: Callable[[], None]) -> int:
    """Delete runs that ended over `RUN_DAYS` days ago; return their number. Idempotent.

    The last runs of each job are kept, and those that a later one retries. check: called between two statements.
    """
    old = JobRun.objects.ended().filter(ended_at__lt=ClockTimestamp() - dt.timedelta(days=settings.RUN_DAYS))
    unneeded = old.filter(~Q(pk__in=_last_runs()), ~Exists(JobRun.objects.filter(retry_of=OuterRef("pk")))).order_by()
    deleted = 0
    while keys := list(unneeded.values_list("pk", flat=True)[:RUNS_AT_ONCE]):
        check()
        # `delete()` would load the rows, and search for retries of each again.
        chosen = JobRun.objects.filter(pk__in=keys)
        deleted += chosen._raw_delete(chosen.db)
    return deleted


def _last_runs() -> list[int]:
    """Return the last runs of each job, of those that are not about one bucket."""
    by_job = Window(RowNumber(), partition_by=F("job"), order_by=F("due_at").desc())
    numbered = JobRun.objects.filter(subject="").order_by().annotate(number=by_job)
    return list(numbered.filter(number__lte=KEPT_RUNS).values_list("pk", flat=True))
