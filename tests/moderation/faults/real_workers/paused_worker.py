"""Worker process that can be paused in many purges at once: each purge has its own thread.

`python -m tests.moderation.faults.real_workers.paused_worker` reads purge ids from the first line of its input,
executes them like a task, prints the outcome of each and exits. It runs the product's code with one addition: after a
state change it waits at the breakpoints that are set.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import django

django.setup()

# Settings must be configured before any product module is imported.
from django.db import Error, connection, transaction  # noqa: E402

from moderation.operations.purging import execution, quarantine, stamping  # noqa: E402
from moderation.operations.purging.worker import run_purge  # noqa: E402
from moderation.operations.steps.claiming import move_steps  # noqa: E402
from moderation.operations.undo import restore  # noqa: E402
from tests.moderation.faults.real_workers.breakpoints import wait_at_breakpoint  # noqa: E402


def move_steps_and_wait(steps: Any, to: Any, **stored: Any) -> Any:
    """Change the state, and wait at the breakpoint after the commit."""
    moved = move_steps(steps, to, **stored)
    if moved:
        transaction.on_commit(partial(wait_at_breakpoint, moved[0].purge_id, to))
    return moved


def run_to_completion(purge_id: int) -> str:
    """Run the purge as far as this worker gets; return a line with the outcome."""
    try:
        return f"{purge_id} {run_purge(purge_id).state}"
    except Error as error:
        # Postgres has ended the transaction and its connection; a task would fail the same way.
        return f"{purge_id} {type(error).__name__}"
    finally:
        connection.close()


def main() -> None:
    """Run the purges until this worker has nothing left to do."""
    for module in (quarantine, stamping, execution, restore):
        vars(module)["move_steps"] = move_steps_and_wait
    purge_ids = [int(text) for text in sys.stdin.readline().split()]
    with ThreadPoolExecutor(len(purge_ids)) as threads:
        for line in threads.map(run_to_completion, purge_ids):
            print(line)


if __name__ == "__main__":
    main()
