"""Processes of the local servers, for tests that stop them or call their tools."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress

import psutil

from chatstore.local.layout import Stack
from devstack.cassandra import name_nodetool
from devstack.processes import wait_until_ended


def call_nodetool(stack: Stack, index: int, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run nodetool and return the completed process."""
    command = name_nodetool(stack, index, *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def wait_until_dead(process: psutil.Process, *, seconds: float) -> bool:
    """Return whether it ended within the time."""
    return not wait_until_ended([process], seconds=seconds)


def family_of(process: psutil.Process) -> Iterator[psutil.Process]:
    """Yield a process and its descendants; nothing if it has ended."""
    with suppress(psutil.NoSuchProcess):
        yield process
        yield from process.children(recursive=True)


def processor_seconds_of(process: psutil.Process) -> float:
    """Return the processor time of a process and its descendants, those that have ended included."""
    return sum(map(_processor_seconds, family_of(process)))


def _processor_seconds(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0
