"""Handle of the paused worker: one process in which many purges wait, each at its breakpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings

from tests.moderation.faults.real_workers.workers import worker_environment
from tests.waiting import LIMIT_SECONDS


@dataclass(frozen=True, slots=True)
class PausedWorker:
    """The worker's process. SIGSTOP stops all of its threads, including those that renew leases."""

    process: subprocess.Popen[str]

    def begin(self, purge_ids: Sequence[int]) -> None:
        """Start work on all the purges at the same time."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, purge_ids)) + "\n")
        self.process.stdin.flush()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> dict[int, str]:
        """Continue the process until it ends; return the outcome of each purge by id."""
        self.process.send_signal(signal.SIGCONT)
        output, _ = self.process.communicate(timeout=LIMIT_SECONDS)
        assert self.process.returncode == 0
        return {int(purge_id): end for purge_id, end in map(str.split, output.splitlines())}


@contextmanager
def paused_worker_started() -> Iterator[PausedWorker]:
    """Start an idle worker; kill it at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.moderation.faults.real_workers.paused_worker"],
        env=os.environ | worker_environment(),
        cwd=settings.BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield PausedWorker(process)
        finally:
            process.kill()
