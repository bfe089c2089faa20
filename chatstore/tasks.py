"""Celery's tasks of maintenance. A lost task is no loss: what is due stands in Postgres, and is looked for."""

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


class Bell(DjangoTask):  # type: ignore[misc]
    """A task that only tells workers of what stands in Postgres already.

    Whoever rings has done his act, so a broker that is away is no error of his: it is
    logged, and the next look of the scheduler after its return finds what is due. One that nobody
    heard for `BELL_SECONDS` is dropped.
    """

    abstract = True

    def apply_async(self, *args: Any, **kwargs: Any) -> AsyncResult | None:
        """Enqueues; None, after less than a second, when the broker does not answer."""
        kwargs.setdefault("expires", settings.BELL_SECONDS)
        try:
            return super().apply_async(*args, **kwargs)
        except OperationalError as error:
            logger.warning("nobody was told of %s yet, the broker is away: %s", self.name, error)
            return None


@app.task(base=Bell)
def work_on_run(run_id: int) -> None:
    """Does a maintenance job's run; settings name the operation."""
    runs.work_on_run(run_id)


def ring_run_on_commit(run_id: int) -> None:
    """Has a worker take the run up, once what was done is stored."""
    transaction.on_commit(partial(work_on_run.delay, run_id))


@app.task
def look_for_due_runs() -> None:
    """Makes the runs whose time has come, and enqueues those that nobody works on."""
    runs.make_due_runs(postgres_now())
    for run in runs.due_runs():
        work_on_run.delay(run.pk)


@worker_ready.connect
def _keep_watch(**_: Any) -> None:
    """Each worker's main process watches beside its tasks, for as long as it lives."""
    if settings.WATCH_SECONDS:
        Thread(target=monitor_loop.keep_watch, args=(Event(),), name="watch", daemon=True).start()
