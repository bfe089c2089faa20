"""A real Celery worker and beat, on a database of their own, so that they take nobody else's purges."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psutil
from django.conf import settings
from django.db import connection

from tests.moderation.faults.real_workers.arrows import Backend

CHILDREN = 6
READY_SECONDS = 60
REDIS_DATABASE = 13
"""No other tests' workers listen there."""

LIST_TRIES = 20

LEASE_SECONDS = 3
"""Ten times shorter than the default; renewed each second, as seldom as the settings allow."""


class Workers:
    """The processes, as the kernel sees them, and what they say."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "workers.log"
        self._beat: subprocess.Popen[bytes] | None = None
        self._worker: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when the worker takes tasks."""
        with self._log.open("ab") as log:
            self._worker = _start("worker", f"--concurrency={CHILDREN}", log=log.fileno())
            self._beat = _start("beat", "--pidfile=", log=log.fileno())
        wait_until(lambda: "celery@" in self.said() and "ready." in self.said(), seconds=READY_SECONDS)

    def stop(self) -> None:
        """Kills both, whatever state they are in: asked to end, they would wait for their tasks."""
        for process in (self._beat, self._worker):
            if process is None:
                continue
            for member in [*self._children_of(process), psutil.Process(process.pid)]:
                member.kill()
            process.wait()

    def said(self) -> str:
        """The log of both, so far."""
        return self._log.read_text(errors="replace")

    def child_at(self, backend: Backend) -> psutil.Process:
        """The child of the worker that has this connection to Postgres."""
        assert self._worker is not None
        # The kernel's list of connections may pass one over while others open and close.
        for _ in range(LIST_TRIES):
            for child in self._children_of(self._worker):
                if any(one.laddr.port == backend.client_port for one in child.net_connections("tcp")):
                    return child
        raise AssertionError("the connection belongs to no child of this worker")

    @staticmethod
    def _children_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
        return list(psutil.Process(process.pid).children(recursive=True))


def wait_until(happens: Callable[[], bool], *, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, f"nothing of it happened in {seconds} s"
        time.sleep(0.05)


def _start(*command: str, log: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "--app=chatstore", *command, "--loglevel=INFO"],
        env=os.environ | _environment(),
        cwd=settings.BASE_DIR,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    database = connection.settings_dict
    password = quote(str(database["PASSWORD"]), safe="")
    where = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return {
        "DATABASE_URL": f"postgres://{database['USER']}:{password}@{where}",
        "SECRET_KEY": settings.SECRET_KEY,
        "REDIS_URL": settings.REDIS_URL.rsplit("/", 1)[0] + f"/{REDIS_DATABASE}",
        "BEAT_LOOK_SECONDS": "1",
        "PURGE_LEASE_SECONDS": str(LEASE_SECONDS),
        "PURGE_LEASE_RENEW_SECONDS": "1",
        "PYTHONUNBUFFERED": "1",
    }
