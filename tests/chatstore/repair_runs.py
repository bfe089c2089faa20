"""Runs of the nightly repair, which all tests share."""

from __future__ import annotations

from chatstore.models import JobRun


def delete_repair_runs() -> None:
    """Delete all runs of the nightly repair; retries refer to the runs before them."""
    for run in JobRun.objects.filter(job="repair", subject="").order_by("-id"):
        run.delete()
