"""The Celery worker that executes purges in the bench, and the time that purges and undos take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.conf import settings

from chatstore.celery import app
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging.lifecycle import confirm_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.tasks import enqueue_workers, poll_due_purges
from tests.bench.timing import seconds_of

WORKERS = 2
"""Processes of the worker, as `make run` starts."""

READY_SECONDS = 60
POLL_SECONDS = 10.0
"""Poll interval for steps that became due, as in beat."""

BUSY = frozenset({PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.WAITING, PurgeState.UNDOING})


@contextmanager
def bench_stack() -> Iterator[None]:
    """Run a Celery worker."""
    app.control.purge()
    # Keep the log: it shows whether the store timed out during a measurement.
    log = settings.STACK.logs / "bench-worker.log"
    command = ["-m", "celery", "--app=chatstore", "worker", f"--concurrency={WORKERS}"]
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, *command, "--without-mingle", "--without-gossip", "--loglevel=INFO"],
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + READY_SECONDS
        while " ready." not in log.read_text(errors="replace"):
            if worker.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no worker started:\n{log.read_text(errors='replace')[-2_000:]}")
            time.sleep(0.1)
        yield
    finally:
        worker.terminate()
        worker.wait()


def seconds_of_purge(moderator: User, purge: Purge) -> float:
    """Return the seconds from confirmation to verification, including the quarantine."""

    def run_once() -> None:
        begin_purge(moderator, purge)
        wait_for(purge, PurgeState.DONE)

    return seconds_of(run_once)


def begin_purge(moderator: User, purge: Purge) -> None:
    """Confirm the purge and enqueue workers."""
    confirm_purge(purge.id, moderator=moderator, reason="bench", manifest_hash=bytes(purge.manifest_hash or b""))
    enqueue_workers(purge.id)


def seconds_of_undo(moderator: User, purge: Purge) -> float:
    """Return the seconds from the undo request to verification."""

    def run_once() -> None:
        request_undo(purge.id, moderator=moderator, part=UndoPart(), reason="Appeal accepted")
        enqueue_workers(purge.id)
        wait_for(purge, PurgeState.UNDONE)

    return seconds_of(run_once)


def wait_for_scan(purge: Purge) -> None:
    """Wait until the purge is scanned."""
    wait_while(purge, {PurgeState.SCANNING})
    purge.refresh_from_db()


def is_busy(purge: Purge) -> bool:
    """Return whether the worker still has work to do for the purge."""
    purge.refresh_from_db(fields=("state", "wait_reason"))
    return purge.state in BUSY


def wait_for(purge: Purge, state: PurgeState) -> None:
    """Wait until the purge has ended.

    Raises `RuntimeError` for another final state, since its duration would be meaningless.
    """
    wait_while(purge, BUSY)
    if purge.state != state:
        raise RuntimeError(f"the purge is {purge.state}: {purge.wait_reason}")


def wait_while(purge: Purge, states: Collection[PurgeState]) -> None:
    """Wait while the purge is in one of the states, and poll for work that became due."""
    polled_at = time.monotonic()
    while True:
        purge.refresh_from_db(fields=("state", "wait_reason"))
        if purge.state not in states:
            return
        time.sleep(0.02)
        if time.monotonic() - polled_at > POLL_SECONDS:
            poll_due_purges()
            polled_at = time.monotonic()
