"""`python -m tests [--workers N] [ARGUMENTS]`: start the test servers, run the suite, stop the servers.

Run one process with unbuffered output, or several workers on the same servers. Each worker has its own database,
keyspace and broker.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from chatstore.local.layout import TEST_STACK_NAMES
from devstack.servers import is_external

# The conftest decides which tests share a worker. A worker that dies is not replaced, because the replacement would
# have no database.
SEVERAL_WORKERS = ("--no-loadscope-reorder", "--max-worker-restart=0")


def name_command(arguments: Sequence[str], *, workers: int) -> list[str]:
    """Return the command line that runs the suite, or the part selected by the pytest arguments."""
    servers = [sys.executable, "-m", "devstack", "exec", TEST_STACK_NAMES[0]]
    pytest = [sys.executable, "-m", "pytest"]
    if workers == 1:
        return [*servers, *pytest, *arguments]
    named = [name for name in ("DATABASE_URL", "REDIS_URL", "CASSANDRA_CONTACT_POINTS") if is_external(name)]
    if named:
        print(f"Running with one worker: {named[0]} names a single database.", flush=True)
        return [*servers, *pytest, *arguments]
    return [*servers, *pytest, f"--numprocesses={workers}", *SEVERAL_WORKERS, *arguments]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests", allow_abbrev=False)
    parser.add_argument(
        "--workers", type=int, choices=range(1, len(TEST_STACK_NAMES) + 1), default=len(TEST_STACK_NAMES)
    )
    options, rest = parser.parse_known_args()
    command = name_command(rest, workers=options.workers)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted
