"""Real Celery workers and beat, on a database of their own, so that they take nobody else's purges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
from django.conf import settings
from django.db import connection

from tests.brokers import broker_for
from tests.moderation.faults.real_workers.arrows import Backend
from tests.waiting import wait_until

WORKERS = 6
"""Five purges stand at their arrows at once, each with a worker that waits there; one is free to look."""

LIST_TRIES = 20

LEASE_SECONDS = 3
"""Ten times shorter than the default; renewed each second, as seldom as the settings allow."""


class Workers:
    """The processes, as the kernel sees them, and what they say.

    Each worker is a process of its own that does its tasks itself, and is started again after
    it was killed, as a supervisor does: what is killed is then a whole worker. Postgres knows
    each by its name, which no other has after it.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "workers.log"
        self._beat: subprocess.Popen[bytes] | None = None
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0

    def start(self) -> None:
        """Returns when all the workers take tasks."""
        for _ in range(WORKERS):
            self._start_worker()
        self._start_beat()
        wait_until(lambda: self.said().count(" ready.") == WORKERS)

    def stop(self) -> None:
        """Kills all of them, whatever state they are in: asked to end, they would wait for their tasks."""
        for process in (self._beat, *self._workers.values()):
            if process is not None:
                process.kill()
                process.wait()

    def said(self) -> str:
        """The log of all, so far."""
        return self._log.read_text(errors="replace")

    def at(self, backend: Backend) -> subprocess.Popen[bytes]:
        """The worker that has this connection to Postgres."""
        # The kernel's list of connections may pass one over while others open and close.
        for _ in range(LIST_TRIES):
            for worker in self._workers.values():
                connections = psutil.Process(worker.pid).net_connections("tcp")
                if any(one.laddr.port == backend.client_port for one in connections):
                    return worker
        raise AssertionError("the connection belongs to none of the workers")

    def named(self, name: str) -> subprocess.Popen[bytes] | None:
        """The worker of this name; None when it has been killed."""
        return self._workers.get(name)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL; another one is on its way when this returns."""
        worker.kill()
        worker.wait()
        self._replace(worker)

    def revive(self) -> int:
        """Starts again what has ended by itself, as a supervisor does; returns how many that were."""
        ended = [worker for worker in self._workers.values() if worker.poll() is not None]
        for worker in ended:
            self._replace(worker)
        if self._beat is None or self._beat.poll() is None:
            return len(ended)
        self._start_beat()
        return len(ended) + 1

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Beat looks for nothing while the context stands, so nobody here begins anything new."""
        assert self._beat is not None
        self._beat.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._beat.send_signal(signal.SIGCONT)

    def _replace(self, worker: subprocess.Popen[bytes]) -> None:
        self._workers = {name: one for name, one in self._workers.items() if one is not worker}
        self._start_worker()

    def _start_worker(self) -> None:
        self._started += 1
        name = f"w{self._started}"
        self._workers[name] = self._start(
            name, "worker", "--pool=solo", f"--hostname={name}@%h", "--without-mingle", "--without-gossip"
        )

    def _start_beat(self) -> None:
        self._beat = self._start("beat", "beat", "--pidfile=")

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "celery", "--app=chatstore", *command, "--loglevel=INFO"],
                env=os.environ | worker_environment() | {"PGAPPNAME": name},
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log.fileno(),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def worker_environment() -> dict[str, str]:
    """What a process beside this one needs to work on this one's purges, with short leases."""
    database = connection.settings_dict
    password = quote(str(database["PASSWORD"]), safe="")
    where = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return {
        "DATABASE_URL": f"postgres://{database['USER']}:{password}@{where}",
        "SECRET_KEY": settings.SECRET_KEY,
        "REDIS_URL": broker_for("faults"),
        "BEAT_LOOK_SECONDS": "1",
        "PURGE_LEASE_SECONDS": str(LEASE_SECONDS),
        "PURGE_LEASE_RENEW_SECONDS": "1",
        "PYTHONUNBUFFERED": "1",
    }
