"""`python -m tests [--workers N] [ARGUMENTS]`: the suite, on servers that are up while it lasts.

One process on one stack, whose output is seen at once; or two workers beside each other, each on a stack of its own.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from chatstore.local.checks import NEEDED_BYTES, measure_free_memory
from chatstore.local.layout import TEST_STACK_NAMES
from chatstore.local.servers import is_named

# A file's tests stay together and in their order: they share what stands for the module. Who has died
# is not replaced: the next one would be given no servers.
BESIDE = ("--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0")


def name_command(arguments: Sequence[str], *, workers: int) -> list[str]:
    """The command line that runs the suite, or what pytest's arguments narrow it down to."""
    first, second = TEST_STACK_NAMES
    servers = [sys.executable, "-m", "chatstore.local", "exec"]
    pytest = [sys.executable, "-m", "pytest"]
    if workers == 1:
        return [*servers, first, *pytest, *arguments]
    obstacle = find_obstacle()
    if obstacle is None:
        return [*servers, f"--beside={second}", first, *pytest, *BESIDE, *arguments]
    print(f"One test after the other: {obstacle}.", flush=True)
    return [*servers, first, *pytest, *arguments]


def find_obstacle() -> str | None:
    """Why two workers can't run beside each other here, or None."""
    named = [name for name in ("DATABASE_URL", "REDIS_URL", "CASSANDRA_CONTACT_POINTS") if is_named(name)]
    if named:
        return f"there is one set of servers, that {named[0]} names"
    needed, free = len(TEST_STACK_NAMES) * NEEDED_BYTES, measure_free_memory()
    if free < needed:
        return f"only {free / 1024**3:.1f} GiB of memory are free, two sets of servers need {needed / 1024**3:.0f}"
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests", allow_abbrev=False)
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    options, rest = parser.parse_known_args()
    command = name_command(rest, workers=options.workers)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted
