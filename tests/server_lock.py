"""Concurrency of tests on shared servers: all run beside each other, except those marked `alone`.

Those measure wall-clock promises or stop a node, while the other workers wait.
"""

import fcntl
from contextlib import ExitStack
from pathlib import Path
from typing import IO


def _lock(file: IO[str], mode: int) -> bool:
    """Lock the file; return whether another process had it locked."""
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(file, mode)
        return True
    return False


class ServerLock:
    """The lock of one process among those that run tests on the same servers.

    folder: contains the lock files; a lock ends with its process in any case.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks = ExitStack()
        self._is_acquired = False

    def acquire(self, *, exclusive: bool) -> bool:
        """Wait until a test may run, at once if the lock is already acquired; return whether it had to wait."""
        if self._is_acquired:
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        tests_lock = self._locks.enter_context((self._folder / "tests.lock").open("a"))
        with (self._folder / "queue.lock").open("a") as queue_lock:
            # A process that waits for exclusive access keeps the queue locked, so that no other one overtakes it.
            has_waited = _lock(queue_lock, fcntl.LOCK_EX)
            has_waited |= _lock(tests_lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        self._is_acquired = True
        return has_waited

    def release(self) -> None:
        """Let the other processes run."""
        self._locks.close()
        self._is_acquired = False
