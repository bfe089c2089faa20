"""Processes that run beside a raid: a Celery worker and a process that posts."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from chatstore.celery import app
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.purging.completion import seconds_until_due
from moderation.operations.purging.scheduling import reserve_wakeup
from moderation.operations.purging.wait_reasons import format_wait, wait_of
from moderation.tasks import run_purge
from tests.brokers import broker_for
from tests.planted import assert_no_secrets
from tests.waiting import LIMIT_SECONDS, wait_until

MAX_SHOWN_CHARACTERS = 20_000
"""Of the end of a worker's log, when a test fails."""

_IMPORT = "from tests.moderation.incident.posting import post_continuously"


def broker() -> str:
    """Return the address of the worker's own queue."""
    return broker_for("incident")


def pause_purges_of_other_tests() -> None:
    """Pause what other tests have left unfinished: a worker joins any running purge, and its turns come before others.

    Call it before a test confirms purges of its own, and mark the test `alone`.
    """
    Purge.objects.active().update(state=PurgeState.PAUSED, wakeup_expires_at=None)


def enqueue_workers(purge_id: int) -> None:
    """Enqueue the purge for the worker, as a view does after confirmation.

    Without the reservation, the worker could use the wake-up for another purge that waits.
    """
    if reserve_wakeup(purge_id):
        with app.connection_for_write(broker()) as connection:
            run_purge.apply_async((purge_id,), connection=connection)


@contextmanager
def running_worker(folder: Path, *, processes: int = 1, environment: Mapping[str, str] | None = None) -> Iterator[Path]:
    """Run a worker that receives only purges enqueued here; yield its log file."""
    command = ["-m", "celery", "--app=chatstore", "worker", f"--concurrency={processes}", "--without-mingle"]
    log = folder / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, *command, "--without-gossip", "--hostname=incident@%h", "--loglevel=INFO"],
            env=os.environ | {"REDIS_URL": broker()} | (dict(environment) if environment else {}),
            cwd=settings.BASE_DIR,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: " ready." in log.read_text(errors="replace"))
        yield log
    finally:
        worker.terminate()
        worker.wait()
        # Pytest shows it if the test fails.
        print(log.read_text(errors="replace")[-MAX_SHOWN_CHARACTERS:])
    assert_no_secrets(log)


def wait_until_done(purge_id: int) -> None:
    """Wait until the purge is done; otherwise fail with what it waits for.

    A purge that waits to try again is enqueued as often as by beat: no fault of it if a disk stalls for seconds.
    """
    purge, polled_at = Purge.objects.get(id=purge_id), time.monotonic()

    def is_done() -> bool:
        nonlocal polled_at
        purge.refresh_from_db()
        if time.monotonic() > polled_at + settings.BEAT_POLL_SECONDS:
            polled_at = time.monotonic()
            remaining = seconds_until_due(purge)
            if remaining is not None and remaining < 0:
                enqueue_workers(purge_id)
        return purge.state == PurgeState.DONE

    try:
        wait_until(is_done)
    except AssertionError as error:
        steps = list(purge.steps.open().values("ordinal", "state", "kind", "due_at")[:5])
        raise AssertionError(f"the purge is {purge.state}; {format_wait(wait_of(None, purge))}; {steps}") from error


class ChatTraffic:
    """A process that posts into a channel, and the messages stored so far."""

    def __init__(self, channel_id: int, *, author_id: int, rate: float) -> None:
        arguments = f"{channel_id}, author_id={author_id}, rate={rate}"
        self.stored: dict[int, str] = {}
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", f"{_IMPORT}; post_continuously({arguments})"],
            cwd=settings.BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            message_id, _, content = line.rstrip("\n").partition(" ")
            self.stored[int(message_id)] = content

    def end(self) -> None:
        """Stop posting; `stored` is complete afterwards."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        assert self._process.wait(timeout=LIMIT_SECONDS) == 0
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
