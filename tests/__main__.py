"""`python -m tests [--workers N] [ARGUMENTS]`: the suite, on servers that are up while it lasts.

One process, whose output is seen at once; or two workers on the same servers, each with a database, a keyspace
and a broker of its own.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from chatstore.local.layout import TEST_STACK_NAMES
from devstack.servers import is_named

# Which tests stay together is said in the conftest. A worker that died is not replaced: the next one would be
# given no database.
TWO_WORKERS = ("--numprocesses=2", "--no-loadscope-reorder", "--max-worker-restart=0")


def name_command(arguments: Sequence[str], *, workers: int) -> list[str]:
    """Return the command line that runs the suite, or what pytest's arguments narrow it down to."""
    servers = [sys.executable, "-m", "devstack", "exec", TEST_STACK_NAMES[0]]
    pytest = [sys.executable, "-m", "pytest"]
    if workers == 1:
        return [*servers, *pytest, *arguments]
    named = [name for name in ("DATABASE_URL", "REDIS_URL", "CASSANDRA_CONTACT_POINTS") if is_named(name)]
    if named:
        print(f"One test after the other: {named[0]} names one database for both workers.", flush=True)
        return [*servers, *pytest, *arguments]
    return [*servers, *pytest, *TWO_WORKERS, *arguments]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests", allow_abbrev=False)
    parser.add_argument("--workers", type=int, choices=(1, 2), default=2)
    options, rest = parser.parse_known_args()
    command = name_command(rest, workers=options.workers)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted
