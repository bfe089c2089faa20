"""Which tests run beside each other: all, but for those that are marked `alone`.

What is promised within seconds of the wall clock is measured while the other worker waits.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def take_turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Waits until the test may run, in whatever process; the locks end with that, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "door.lock").open("a") as door, (folder / "room.lock").open("a") as room:
        # Who waits for an empty room stands in the door, so that nobody slips in before.
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
