"""nodetool runs without a shell, ends with its caller, and errors name the node."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from pytest_django import Settings

from chatstore.domain.errors import NodeUnreachable
from chatstore.store import nodetool

NODE = "127.0.0.2"
WAIT_SECONDS = 120.0


def wait_for(mark: str, *, count: int) -> list[psutil.Process]:
    """Wait for `count` processes with the mark in their command line and return them."""
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        found = [p for p in psutil.process_iter(["cmdline", "status"]) if mark in (p.info["cmdline"] or [])]
        found = [p for p in found if p.info["status"] != psutil.STATUS_ZOMBIE]
        if len(found) == count or time.monotonic() > give_up:
            return found
        time.sleep(0.05)


def test_it_returns_the_output_of_the_node() -> None:
    assert "Uptime" in nodetool.run(NODE, "info")


def test_the_template_is_split_before_values_are_inserted(settings: Settings) -> None:
    settings.NODETOOL = "echo 'a b' {host}:{port} $HOME;"
    settings.CASSANDRA_JMX_PORTS = {NODE: 7}
    assert nodetool.run(NODE, "two words") == f"a b {NODE}:7 $HOME; two words\n"


def test_a_node_whose_port_is_closed_is_named(settings: Settings) -> None:
    settings.NODETOOL = "sh -c 'echo \"nodetool: Failed to connect to {host} - ConnectException\" >&2; exit 1'"
    with pytest.raises(NodeUnreachable, match=f"nodetool could not reach node {NODE}"):
        nodetool.run(NODE, "info")


def test_errors_of_nodetool_are_reported_without_stack_trace_or_template(settings: Settings) -> None:
    settings.NODETOOL = 'sh -c \'echo "error: no such table" >&2; echo "  at Foo.bar" >&2; exit 2\' secret-pw'
    with pytest.raises(nodetool.NodetoolFailed) as failed:
        nodetool.run(NODE, "repair")
    assert str(failed.value) == f"nodetool repair failed on node {NODE}: no such table"


def test_a_missing_command_is_reported(settings: Settings) -> None:
    settings.NODETOOL = "/nowhere/nodetool"
    with pytest.raises(NodeUnreachable, match="No such file or directory"):
        nodetool.run(NODE, "info")


SLEEP_FOREVER = "sh -c 'sh -c \"sleep 300; true\" MARK; true' MARK"
"""Start a program that starts another one. Both have the mark, and so has the process that ties them to their caller.
"""


def test_all_its_processes_end_at_the_timeout(settings: Settings) -> None:
    mark = f"mark-{time.monotonic_ns()}"
    settings.NODETOOL = SLEEP_FOREVER.replace("MARK", mark)
    with pytest.raises(NodeUnreachable, match="did not answer nodetool info within"):
        nodetool.run(NODE, "info", timeout=1)
    assert wait_for(mark, count=0) == []


@pytest.mark.slow
def test_all_its_processes_end_when_its_caller_is_killed() -> None:
    mark = f"mark-{time.monotonic_ns()}"
    code = "\n".join(
        (
            "import django; django.setup()",
            "from chatstore.store import nodetool",
            f"nodetool.run({NODE!r}, 'info')",
        )
    )
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "NODETOOL": SLEEP_FOREVER.replace("MARK", mark),
    }
    caller = subprocess.Popen([sys.executable, "-c", code], env=environ)
    try:
        assert len(wait_for(mark, count=3)) == 3
    finally:
        os.kill(caller.pid, signal.SIGKILL)
        caller.wait()
    assert wait_for(mark, count=0) == []
