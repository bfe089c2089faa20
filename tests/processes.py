"""Processes of the local servers, for tests that stop them or call their tools."""

from __future__ import annotations

import subprocess

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
