"""Which tests run beside each other: all, but for those that are marked `alone`.

What is promised within seconds of the wall clock is measured, and a node taken down, while the other worker waits.
"""

import fcntl
from contextlib import ExitStack
from pathlib import Path
from typing import IO


def _lock(file: IO[str], how: int) -> bool:
    """Lock the file; return whether another process had it."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(file, how)
        return True
    return False


class Turns:
    """The turns of one process among those that run tests on the same servers.

    folder: where the processes keep their locks, which end with the process, however it ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = ExitStack()
        self._is_taken = False

    def take(self, *, alone: bool) -> bool:
        """Wait until a test may run, nothing while the turn is held already; return whether it had to wait."""
        if self._is_taken:
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        room = self._held.enter_context((self._folder / "room.lock").open("a"))
        with (self._folder / "door.lock").open("a") as door:
            # Who waits for an empty room stands in the door, so that no other slips in before.
            has_waited = _lock(door, fcntl.LOCK_EX)
            has_waited |= _lock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        self._is_taken = True
        return has_waited

    def give_back(self) -> None:
        """Let the others run."""
        self._held.close()
        self._is_taken = False
