"""Start and stop the whole stack with `make run`, as a developer would: `python -m tests.local.drill`.

Not part of the suite: it uses the `run` servers and takes minutes. It stops at the first broken promise, with exit code
1.
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
from devstack.processes import find_process, is_dead
from devstack.servers import list_servers
from devstack.web import NAMES as WEB_NAMES

FIRST_SECONDS = 150
LATER_SECONDS = 45
STOP_SECONDS = 12
# No time is promised for the work that continues in the background.
FILL_SECONDS = 1_800

STACK = read_stack(os.environ, name="run")
NAMES = [*WEB_NAMES, *(server.name for server in list_servers(STACK))]


class Broken(Exception):
    """The stack did not behave as promised."""


@dataclass(frozen=True)
class Running:
    """A `make run` that reported to be ready, and all processes it started."""

    make: subprocess.Popen[str]
    family: list[psutil.Process]

    @property
    def starter(self) -> psutil.Process:
        return psutil.Process(self.make.pid).children()[0]


def main() -> int:
    try:
        # Stop while the demo messages are written: the next start continues with them.
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
    """Wait for the ready line and request the page it names."""
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
            raise Broken(f"{address} returned status {page.status}.")
    print(f"ready after {seconds:.0f} s, limit {within} s", flush=True)
    return Running(make, find_processes())


def wait_for_ready_line(make: subprocess.Popen[str]) -> str:
    """Return the address in the ready line."""
    return wait_for_line(make, "Chatstore is ready").split()[-1]


def wait_for_line(make: subprocess.Popen[str], beginning: str) -> str:
    assert make.stdout is not None
    for line in make.stdout:
        print(f"  | {line}", end="", flush=True)
        if line.startswith(beginning):
            return line
    raise Broken(
        f"make run ended with {make.wait()} before it printed a line starting with {beginning!r}, or timed out."
    )


def wait_until_filled(running: Running, *, within: float) -> None:
    """Wait until the demo messages are complete, unless they already are, and check that they exist."""
    alarm = threading.Timer(within, os.killpg, (running.make.pid, signal.SIGINT))
    alarm.start()
    try:
        if is_due(STACK, SEED_DEMO):
            wait_for_line(running.make, "Demo messages are complete.")
    finally:
        alarm.cancel()
    # The command writes nothing: it counts as done only if every channel exists.
    again = [sys.executable, "manage.py", "seed_demo", "--json"]
    environ = os.environ | {"CHATSTORE_STACK": STACK.name}
    done = subprocess.run(again, cwd=PROJECT_ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0 or json.loads(done.stdout)["messages"] != 0:
        raise Broken(f"The demo messages are not complete: {done.stdout}{done.stderr}")
    print("the demo messages are complete", flush=True)


def stop_by_ctrl_c(running: Running) -> None:
    """Send SIGINT to make and its process group, as a terminal does."""
    began = time.monotonic()
    os.killpg(running.make.pid, signal.SIGINT)
    running.make.communicate()
    seconds = time.monotonic() - began
    if seconds > STOP_SECONDS:
        raise Broken(f"Stopping took {seconds:.1f} s.")
    left = [process for process in running.family if not is_dead(process)]
    if left:
        raise Broken(f"Processes left after Ctrl-C: {left}.")
    print(f"stopped after {seconds:.1f} s, limit {STOP_SECONDS} s, no process left", flush=True)


def kill_starter(running: Running) -> list[int]:
    """Send SIGKILL to the starter only; return the pids of the nodes, which must keep running."""
    nodes = find_pids(NODES)
    running.starter.kill()
    running.make.communicate()
    if find_pids(NODES) != nodes or len(nodes) != len(NODES):
        raise Broken("The servers did not survive their starter.")
    print("killed the starter; its servers keep running", flush=True)
    return nodes


def find_pids(names: tuple[str, ...]) -> list[int]:
    return [process.pid for name in names if (process := find_process(STACK, name))]


def find_processes() -> list[psutil.Process]:
    """Return the servers, the web processes and their children."""
    heads = [process for name in NAMES if (process := find_process(STACK, name))]
    return [one for head in heads for one in (head, *head.children(recursive=True))]


if __name__ == "__main__":
    sys.exit(main())
