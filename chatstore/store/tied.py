"""Run a command that ends, with all its processes, when its starter dies: `python tied.py PARENT COMMAND…`.

A separate program, started without the project: a function called between fork and exec could hang in a process with
threads, and would not reach the processes that the command itself has started.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
"""Linux's prctl option: the signal that a process receives when its parent dies."""

END_SECONDS = 1.0

NOT_FOUND = 127


def main() -> int:
    """Run the command; return its exit code in a shell's convention."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, end_all)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        # The parent died before the signal was set up.
        return 1
    try:
        code = subprocess.call(command)
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        return NOT_FOUND
    return code if code >= 0 else 128 - code


def end_all(*_: object) -> None:
    """Stop our session, this process last."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    time.sleep(END_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
