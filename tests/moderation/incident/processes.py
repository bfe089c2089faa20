"""Processes that run beside a raid: a Celery worker and a process that posts."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from chatstore.celery import app
from moderation.tasks import run_purge
from tests.brokers import broker_for
from tests.planted import assert_no_secrets
from tests.waiting import LIMIT_SECONDS, wait_until

_IMPORT = "from tests.moderation.incident.posting import post_continuously"


def broker() -> str:
    """Return the address of the worker's own queue."""
    return broker_for("incident")


def enqueue_workers(purge_id: int) -> None:
    """Enqueue the purge for the worker, as a view does after confirmation."""
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
    assert_no_secrets(log)


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
