"""Celery tasks of maintenance. Losing a task is harmless: beat polls Postgres for due work."""

from __future__ import annotations

import logging
from functools import partial
from threading import Event, Thread
from typing import Any

from celery.contrib.django.task import DjangoTask
from celery.result import AsyncResult
from celery.signals import worker_ready
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from chatstore.celery import app
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings import monitor_loop
from chatstore.operations.jobs import runs

logger = logging.getLogger(__name__)


class WakeupTask(DjangoTask):  # type: ignore[misc]
    """A task that only wakes workers up; the work itself is recorded in Postgres.

    The caller has already committed its work, so an unavailable broker is logged rather than raised, and the next poll
    after its return finds the due work. An unconsumed task expires after `WAKEUP_EXPIRES_SECONDS`.
    """

    abstract = True

    def apply_async(self, *args: Any, **kwargs: Any) -> AsyncResult | None:
        """Enqueue the task; return None, after less than a second, if the broker does not respond."""
        kwargs.setdefault("expires", settings.WAKEUP_EXPIRES_SECONDS)
        try:
            return super().apply_async(*args, **kwargs)
        except OperationalError as error:
            logger.warning("could not enqueue %s, broker unavailable: %s", self.name, error)
            return None


@app.task(base=WakeupTask)
def work_on_run(run_id: int) -> None:
    """Execute a maintenance job's run; the job names the operation."""
    runs.work_on_run(run_id)


def enqueue_run_on_commit(run_id: int) -> None:
    """Enqueue a run once the current transaction has committed."""
    transaction.on_commit(partial(work_on_run.delay, run_id))


@app.task
def poll_due_runs() -> None:
    """Create the runs that are due, and enqueue those that no worker has claimed."""
    runs.create_due_runs(postgres_now())
    for run in runs.due_runs():
        work_on_run.delay(run.pk)


@worker_ready.connect
def _start_monitor(**_: Any) -> None:
    """Start the monitor in each worker's main process, beside its tasks, for the life of the process."""
    if settings.MONITOR_INTERVAL_SECONDS:
        Thread(target=monitor_loop.run_monitor, args=(Event(),), name="monitor", daemon=True).start()
