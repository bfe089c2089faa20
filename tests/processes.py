"""Processes of the local servers, for tests that stop them or call their tools."""

from __future__ import annotations

import subprocess
import time

import psutil

from chatstore.local.layout import Stack
from devstack.cassandra import name_nodetool
from devstack.processes import is_dead


def call_nodetool(stack: Stack, index: int, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run nodetool and return the completed process."""
    command = name_nodetool(stack, index, *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def wait_until_dead(process: psutil.Process, *, seconds: float) -> bool:
    """Return whether it ended within the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_dead(process):
            return True
        time.sleep(0.1)
    return is_dead(process)
