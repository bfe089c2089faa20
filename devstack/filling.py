"""Seed the demonstration's messages in the background while the pages are already up.

The process is tracked like the web's: by its id and start time. Ctrl-C stops it; if the starter was killed, the next
start does. An interrupted seed continues at the next start.
"""

import os
import subprocess
from collections.abc import Callable

from chatstore.local.layout import PROJECT_ROOT, Stack
from devstack.preparing import SEED_DEMO, SetupStep, is_due, name_command, note_done
from devstack.processes import Launch, path_of_log, read_last_lines, start_child

NAME = SEED_DEMO.name


class DemoFill:
    """The process of a step that runs beside the web, started if it is due; messages are passed to `report`."""

    def __init__(self, stack: Stack, step: SetupStep = SEED_DEMO, *, report: Callable[[str], object]) -> None:
        self._stack = stack
        self._step = step
        self._report = report
        self._attempts_left = 2
        self._child: subprocess.Popen[bytes] | None = None
        if is_due(stack, step):
            report("Adding demo messages; each channel appears when it is complete.")
            self._start()

    def check(self) -> None:
        """Record and report the end of the process, if it has ended."""
        code = self._child.poll() if self._child is not None else None
        if code is None:
            return
        self._child = None
        if code == 0:
            note_done(self._stack, self._step)
            self._report("Demo messages are complete.")
        elif self._attempts_left:
            # On a busy machine a replica may not answer in time; the command continues where it was.
            self._start()
        else:
            log = path_of_log(self._stack, NAME)
            self._report(
                "Could not add the demo messages; the next start retries. "
                f"The last lines of {log}:\n{read_last_lines(log)}"
            )

    def _start(self) -> None:
        self._attempts_left -= 1
        environ = os.environ | {"CHATSTORE_STACK": self._stack.name}
        # Low priority: pages come first.
        command = ["nice", "-n", "10", *name_command(self._step)]
        self._child = start_child(self._stack, Launch(NAME, command, environ, PROJECT_ROOT))
