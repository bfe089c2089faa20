"""Starts and stops the whole stack by `make run`, as a person would: `python -m tests.local.drill`.

Not a test of the suite: it uses the `run` servers, and takes minutes. It ends with the
first thing that is not as promised, and exit code 1.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass

import psutil

from chatstore.local.layout import PROJECT_ROOT, read_stack
from devstack.cassandra import NAMES as NODES
from devstack.preparing import SEED_DEMO, is_due
from devstack.processes import find_process
from devstack.servers import list_servers
from devstack.web import NAMES as WEB_NAMES

FIRST_SECONDS = 150
LATER_SECONDS = 45
STOP_SECONDS = 12
# Of what happens behind the pages nothing is promised.
FILL_SECONDS = 1_800

STACK = read_stack(os.environ, name="run")
NAMES = [*WEB_NAMES, *(server.name for server in list_servers(STACK))]


class Broken(Exception):
    """Something was not as promised."""


@dataclass(frozen=True)
class Running:
    """A `make run` that said it is ready, and everything it started."""

    make: subprocess.Popen[str]
    family: list[psutil.Process]

    @property
    def starter(self) -> psutil.Process:
        return psutil.Process(self.make.pid).children()[0]


def main() -> int:
    try:
        # Stopped while the demo messages are filled in: the next start goes on with them.
        stop_by_ctrl_c(start_by_make(within=FIRST_SECONDS))
        running = start_by_make(within=LATER_SECONDS)
        wait_until_filled(running, within=FILL_SECONDS)
        stop_by_ctrl_c(running)
        nodes = kill_starter(start_by_make(within=LATER_SECONDS))
        running = start_by_make(within=LATER_SECONDS)
        if find_pids(NODES) != nodes:
            raise Broken("After a SIGKILL the running Cassandra nodes were not adopted.")
        stop_by_ctrl_c(running)
    except Broken as broken:
        print(broken, file=sys.stderr)
        return 1
    print("make run starts, stops and recovers as promised.")
    return 0


def start_by_make(*, within: float) -> Running:
    """Waits for the ready line and asks the page that it names."""
    began = time.monotonic()
    make = subprocess.Popen(
        ["make", "run"], cwd=PROJECT_ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    alarm = threading.Timer(within, os.killpg, (make.pid, signal.SIGINT))
    alarm.start()
    try:
        address = wait_for_ready_line(make)
    finally:
        alarm.cancel()
    seconds = time.monotonic() - began
    with urllib.request.urlopen(address, timeout=10) as page:  # noqa: S310 - it is our own address
        if page.status != 200:
            raise Broken(f"{address} answers with {page.status}.")
    print(f"ready after {seconds:.0f} s, {within} s at most", flush=True)
    return Running(make, find_processes())


def wait_for_ready_line(make: subprocess.Popen[str]) -> str:
    """The address in the ready line."""
    return wait_for_line(make, "Chatstore is ready").split()[-1]


def wait_for_line(make: subprocess.Popen[str], beginning: str) -> str:
    assert make.stdout is not None
    for line in make.stdout:
        print(f"  | {line}", end="", flush=True)
        if line.startswith(beginning):
            return line
    raise Broken(f"make run ended with {make.wait()} before a line began with {beginning!r}, or took too long.")


def wait_until_filled(running: Running, *, within: float) -> None:
    """Wait until the demo messages are complete, unless they already were, and check that they are there."""
    alarm = threading.Timer(within, os.killpg, (running.make.pid, signal.SIGINT))
    alarm.start()
    try:
        if is_due(STACK, SEED_DEMO):
            wait_for_line(running.make, "Demo messages are complete.")
    finally:
        alarm.cancel()
    # Writes nothing: it only counts as done when every channel is there.
    again = [sys.executable, "manage.py", "seed_demo", "--json"]
    environ = os.environ | {"CHATSTORE_STACK": STACK.name}
    done = subprocess.run(again, cwd=PROJECT_ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0 or json.loads(done.stdout)["messages"] != 0:
        raise Broken(f"The demo messages are not complete: {done.stdout}{done.stderr}")
    print("the demo messages are there", flush=True)


def stop_by_ctrl_c(running: Running) -> None:
    """What a terminal does: SIGINT to make and to all that share its group."""
    began = time.monotonic()
    os.killpg(running.make.pid, signal.SIGINT)
    running.make.communicate()
    seconds = time.monotonic() - began
    if seconds > STOP_SECONDS:
        raise Broken(f"Stopping took {seconds:.1f} s.")
    left = [process for process in running.family if process.is_running()]
    if left:
        raise Broken(f"These are left after Ctrl-C: {left}.")
    print(f"stopped after {seconds:.1f} s, {STOP_SECONDS} s at most, nothing left", flush=True)


def kill_starter(running: Running) -> list[int]:
    """SIGKILL for the starter alone; the pids of the nodes, which must go on running."""
    nodes = find_pids(NODES)
    running.starter.kill()
    running.make.communicate()
    if find_pids(NODES) != nodes or len(nodes) != len(NODES):
        raise Broken("The servers did not outlive their starter.")
    print("killed the starter; its servers run on", flush=True)
    return nodes


def find_pids(names: tuple[str, ...]) -> list[int]:
    return [process.pid for name in names if (process := find_process(STACK, name))]


def find_processes() -> list[psutil.Process]:
    """The servers, the web, and their own children."""
    heads = [process for name in NAMES if (process := find_process(STACK, name))]
    return [one for head in heads for one in (head, *head.children(recursive=True))]


if __name__ == "__main__":
    sys.exit(main())
