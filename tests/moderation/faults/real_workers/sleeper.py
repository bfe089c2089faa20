"""A worker that many purges can be stopped in at once: it runs each in a thread of its own.

`python -m tests.moderation.faults.real_workers.sleeper` reads their ids from its first line of
input, works on them as a task does, says of each how that ended, and ends itself. Its code is
the product's but for one thing: after a move it waits where `arrows` says so.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import django

django.setup()

# The settings must stand before anything of the product is read.
from django.db import Error, connection, transaction  # noqa: E402

from moderation.domain.states import StepState  # noqa: E402
from moderation.models import Step  # noqa: E402
from moderation.operations.purging import execution, quarantine  # noqa: E402
from moderation.operations.purging.worker import run_purge  # noqa: E402
from moderation.operations.steps.claiming import move_step  # noqa: E402
from moderation.operations.undo import restore  # noqa: E402
from tests.moderation.faults.real_workers.arrows import wait_if_stopped  # noqa: E402


def move_and_wait(step: Step, to: StepState, **stored: Any) -> None:
    """Moves, and waits when the whole transaction is stored."""
    move_step(step, to, **stored)
    transaction.on_commit(partial(wait_if_stopped, step.purge_id, to))


def run_to_its_end(purge_id: int) -> str:
    """One purge, as far as this worker comes with it; returns a line about it."""
    try:
        return f"{purge_id} {run_purge(purge_id).state}"
    except Error as error:
        # As a task would: Postgres has ended the move, and its connection.
        return f"{purge_id} {type(error).__name__}"
    finally:
        connection.close()


def main() -> None:
    """Returns when nothing of any of the purges is left to do here."""
    for module in (quarantine, execution, restore):
        vars(module)["move_step"] = move_and_wait
    purge_ids = [int(text) for text in sys.stdin.readline().split()]
    with ThreadPoolExecutor(len(purge_ids)) as threads:
        for line in threads.map(run_to_its_end, purge_ids):
            print(line)


if __name__ == "__main__":
    main()
