"""Runs a command that ends, all its processes, when whoever started it dies: `python tied.py PARENT COMMAND…`.

A program of its own, started without the project: a function to be called between fork and exec could
hang in a process with threads, and would not reach what the command itself has started.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
"""Linux's prctl: the signal that we get when our parent dies."""

END_SECONDS = 1.0

NOT_FOUND = 127


def main() -> int:
    """The command's exit code, as a shell gives it."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, end_all)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        # It has died before we could ask to be told.
        return 1
    try:
        code = subprocess.call(command)
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        return NOT_FOUND
    return code if code >= 0 else 128 - code


def end_all(*_: object) -> None:
    """Ends our session, ourselves last."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    time.sleep(END_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
