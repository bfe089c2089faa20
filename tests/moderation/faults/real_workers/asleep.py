"""A sleeper of the tests: the process in which many purges stand still at once, each at its arrow."""

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
class Asleep:
    """SIGSTOP stops all of its threads wherever they are, those that renew its leases as well."""

    process: subprocess.Popen[str]

    def begin(self, purge_ids: Sequence[int]) -> None:
        """Has it work on the purges, all at the same time."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, purge_ids)) + "\n")
        self.process.stdin.flush()

    def fall_asleep(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake_up(self) -> dict[int, str]:
        """Lets it go on until it ends by itself; how each purge ended for it."""
        self.process.send_signal(signal.SIGCONT)
        said, _ = self.process.communicate(timeout=LIMIT_SECONDS)
        assert self.process.returncode == 0
        return {int(purge_id): end for purge_id, end in map(str.split, said.splitlines())}


@contextmanager
def sleeper_started() -> Iterator[Asleep]:
    """A sleeper that has nothing to do yet; killed at the end if it has not ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.moderation.faults.real_workers.sleeper"],
        env=os.environ | worker_environment(),
        cwd=settings.BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield Asleep(process)
        finally:
            process.kill()
