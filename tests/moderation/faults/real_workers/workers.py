"""Real Celery workers and beat on a separate database, so that they do not execute purges of other tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
import redis
from django.conf import settings
from django.db import connection

from tests.brokers import broker_for
from tests.moderation.faults.real_workers.breakpoints import Backend
from tests.planted import assert_no_secrets
from tests.waiting import wait_until

WORKERS = 6
"""Five purges wait at their breakpoints at once, each with a blocked worker; one worker is free to poll."""

CONNECTION_SCANS = 20

LEASE_SECONDS = 3
"""A tenth of the default. Renewed each second, the longest interval that the settings allow."""

_ID = r"\[([0-9a-f-]{36})\]"
_RECEIVED = re.compile(rf"Task \S+{_ID} received")
_ENDED = re.compile(rf"Task \S+{_ID} (?:succeeded|raised|retry|ignored)")
_REVOKED = re.compile(rf"Discarding revoked task: \S+?{_ID}")


class Workers:
    """The worker and beat processes and their log.

    Each worker is a single process that executes its tasks itself (solo pool) and is restarted after a kill, as by a
    supervisor, so a kill hits a whole worker. In Postgres each worker has a unique name.
    """

    def __init__(self, folder: Path, *, count: int = WORKERS, environment: dict[str, str] | None = None) -> None:
        """Take the number of workers, and what differs in their environment from `worker_environment`."""
        self._log = folder / "workers.log"
        self._log.touch()
        self._count = count
        self._environment = environment or {}
        self._beat: subprocess.Popen[bytes] | None = None
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0
        self._abandoned: set[str] = set()

    def start(self) -> None:
        """Start workers and beat; return when all workers accept tasks."""
        for _ in range(self._count):
            self._start_worker()
        self._start_beat()
        wait_until(lambda: self.log_text().count(" ready.") == self._count)

    def stop(self) -> None:
        """Kill all processes in any state: a graceful stop would wait for their tasks. Fails for secrets in the log."""
        for process in (self._beat, *self._workers.values()):
            if process is not None:
                process.kill()
                process.wait()
        assert_no_secrets(self._log)

    def log_text(self) -> str:
        """Return the combined log so far."""
        return self._log.read_text(errors="replace")

    def worker_of(self, backend: Backend) -> subprocess.Popen[bytes]:
        """Return the worker that owns this Postgres connection."""
        # The kernel's list of connections may miss one while others open and close.
        for _ in range(CONNECTION_SCANS):
            for worker in self._workers.values():
                connections = psutil.Process(worker.pid).net_connections("tcp")
                if any(one.laddr.port == backend.client_port for one in connections):
                    return worker
        raise AssertionError("no worker owns the connection")

    def worker_named(self, name: str) -> subprocess.Popen[bytes] | None:
        """Return the worker with this name; None if it was killed."""
        return self._workers.get(name)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL; a replacement is starting when this returns."""
        worker.kill()
        worker.wait()
        self._replace(worker)

    def restart_ended(self) -> int:
        """Restart processes that ended by themselves, as a supervisor does; return their number."""
        ended = [worker for worker in self._workers.values() if worker.poll() is not None]
        for worker in ended:
            self._replace(worker)
        if self._beat is None or self._beat.poll() is None:
            return len(ended)
        self._start_beat()
        return len(ended) + 1

    @contextmanager
    def beat_paused(self) -> Iterator[None]:
        """Suspend beat for the duration of the context, so that the workers start nothing new.

        It begins when the last poll has ended: on a busy machine one may still be queued.
        """
        assert self._beat is not None
        self._beat.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: not self._queued_tasks() and not self._running_tasks())
            yield
        finally:
            self._beat.send_signal(signal.SIGCONT)

    def _queued_tasks(self) -> int:
        """Return the number of tasks that wait for the workers; they don't consume the maintenance queue."""
        with redis.from_url(broker_for("faults")) as broker:
            return int(broker.llen("celery"))

    def _running_tasks(self) -> set[str]:
        """Return the ids of received tasks that have not ended, without those of killed workers."""
        text = self.log_text()
        return set(_RECEIVED.findall(text)).difference(_ENDED.findall(text), _REVOKED.findall(text), self._abandoned)

    def _replace(self, worker: subprocess.Popen[bytes]) -> None:
        self._abandoned |= self._running_tasks()
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
                env=os.environ | worker_environment() | self._environment | {"PGAPPNAME": name},
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log.fileno(),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def worker_environment() -> dict[str, str]:
    """Return the environment of a process that works on this process's purges, with short leases."""
    database = connection.settings_dict
    password = quote(str(database["PASSWORD"]), safe="")
    where = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return {
        "DATABASE_URL": f"postgres://{database['USER']}:{password}@{where}",
        "SECRET_KEY": settings.SECRET_KEY,
        "REDIS_URL": broker_for("faults"),
        "BEAT_POLL_SECONDS": "1",
        "PURGE_LEASE_SECONDS": str(LEASE_SECONDS),
        "PURGE_LEASE_RENEW_SECONDS": "1",
        "PYTHONUNBUFFERED": "1",
    }
