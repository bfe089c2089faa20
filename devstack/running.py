"""`make run`: start everything, monitor it until Ctrl-C, stop everything.

Web, beat and worker stop first, then all stores at once. Processes left behind by a SIGKILL of this one are found by
pid and start time at the next start: stores are adopted, the others are restarted, since their code may have changed.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from chatstore.local.layout import Stack
from devstack import filling, web
from devstack.filling import DemoFill
from devstack.preparing import (
    COLLECT_STATIC,
    DEMO_ACCOUNTS,
    MIGRATE,
    SYNC_CASSANDRA,
    Children,
    preparation_lock,
    prepare_schemas,
    run_steps,
    wants_demo,
)
from devstack.processes import Launch, describe_death, end_processes, find_process, is_dead, start_process
from devstack.servers import (
    Server,
    keeps_running,
    list_servers,
    lock_stack,
    start_servers,
    stop_servers,
    wait_until_ready,
)

POLL_SECONDS = 0.5
# Time for a command to end before the servers are stopped.
COMMAND_END_SECONDS = 5


class Stopped(BaseException):
    """Ctrl-C or a similar signal. Not an Exception, so that no handler on the way treats it as an error."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise Stopped at the first SIGINT, SIGTERM or SIGHUP; later ones are ignored, so that a second Ctrl-C does not
    interrupt the shutdown.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, signal.SIG_IGN)
        raise Stopped

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def run_stack(stack: Stack) -> int:
    """Start everything and block; return 0 after Ctrl-C. Raises Problem on failure."""
    with lock_stack(stack), stop_on_signals():
        try:
            began = time.monotonic()
            start_everything(stack)
            print_welcome(stack, seconds=time.monotonic() - began)
            supervise(stack, DemoFill(stack, report=print_line) if wants_demo() else None)
        except Stopped:
            print_line("Stopping")
        finally:
            stop_everything(stack)
        print_line("All servers stopped. Stored data is kept for the next start.")
    return 0


def start_everything(stack: Stack) -> None:
    """Start stores, web and workers, and prepare schemas and demo accounts. Raises Problem.

    Steps that need only Postgres run while the nodes are still starting.
    """
    end_clients(stack)
    launches = {launch.name: launch for launch in web.list_launches(stack, host=read_web_host())}
    print_line("Starting Cassandra, Postgres and Valkey")
    with preparation_lock(stack), ThreadPoolExecutor(1) as threads, closing(Children()) as children:
        early: list[Future[None]] = []

        def begin_early() -> None:
            early.append(threads.submit(prepare_web, stack, launches["web"], children))

        started = start_servers(stack, when_postgres_is_up=begin_early)
        print_line(f"  started: {', '.join(started) or 'none, all were already running'}")
        run_steps(stack, [SYNC_CASSANDRA], report=print_line, children=children)
        early[0].result()
    wait_until_ready(stack, describe_web(stack))
    web.check_page(stack, host=read_web_host(), name=urlsplit(read_base_url(stack)).netloc)
    # After the first page, which three more processes that load the project would delay.
    for name in web.NAMES:
        if name != "web":
            start_process(stack, launches[name])


def prepare_web(stack: Stack, launch: Launch, children: Children) -> None:
    """Bring up to date what the web needs of Postgres and of files, then start it."""
    run_steps(stack, [MIGRATE, COLLECT_STATIC], report=print_line, children=children)
    start_process(stack, launch)
    if wants_demo():
        run_steps(stack, [DEMO_ACCOUNTS], report=print_line, children=children)


def end_clients(stack: Stack) -> list[str]:
    """Stop everything that uses the stores; return the names of those that were killed."""
    return end_processes(stack, [*web.NAMES, filling.NAME], seconds=web.WEB_END_SECONDS)


def describe_web(stack: Stack) -> Server:
    return Server("web", read_web_host(), stack.ports.web, lambda: web.list_launches(stack)[0])


def read_web_host() -> str:
    """Return the address that gunicorn binds; the settings reject plain HTTP on anything but loopback."""
    return os.environ.get("CHATSTORE_WEB_HOST") or "127.0.0.1"


def read_base_url(stack: Stack) -> str:
    return os.environ.get("BASE_URL") or f"http://127.0.0.1:{stack.ports.web}"


def print_welcome(stack: Stack, *, seconds: float) -> None:
    accounts = stack.folder / "accounts.txt"
    print_line("")
    print_line(f"Chatstore is ready after {seconds:.0f} s: {read_base_url(stack)}")
    if accounts.exists():
        print_line("Accounts:")
        for line in accounts.read_text().splitlines():
            print_line(f"  {line}")
    print_line(f"Logs: {stack.logs}")
    print_line("Press Ctrl-C to stop everything.")


def supervise(stack: Stack, demo: DemoFill | None) -> None:
    """Poll the processes until one ends: raise Problem if one has died, Stopped if the `make` that started this process
    was interrupted.
    """
    names = [*web.NAMES, *(server.name for server in list_servers(stack))]
    processes = {name: find_process(stack, name) for name in names}
    while True:
        for name, process in processes.items():
            if process is None or is_dead(process):
                raise describe_death(stack, name)
        if demo is not None:
            demo.check()
        if is_make_interrupted(os.getppid()):
            raise Stopped
        time.sleep(POLL_SECONDS)


def is_make_interrupted(pid: int) -> bool:
    """Return whether the process is a `make` that has received a SIGINT.

    Ctrl-C reaches this process too, but a SIGINT sent to make alone does not: make then waits in its handler, with the
    signal blocked, for its children to end. On Linux that mask can be read; elsewhere this is always False.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        blocked = int(status["SigBlk"], 16)
    except (OSError, KeyError, ValueError):
        return False
    return status["Name"] == "make" and bool(blocked & 1 << signal.SIGINT - 1)


def stop_everything(stack: Stack) -> None:
    """Stop web, beat and workers first, then all stores at once."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    killed = end_clients(stack) + stop_servers(stack)
    if killed:
        print_line(f"Killed because they did not stop in time: {', '.join(killed)}.")


def print_line(line: str) -> None:
    print(line, flush=True)


def run_with_servers(stack: Stack, command: Sequence[str]) -> int:
    """Run a command with the servers of the stack, which it finds by CHATSTORE_STACK; return its exit code.

    Servers started by `up` are left running; all others, including those left by a SIGKILL, are stopped at the end, and
    no other starter may start or stop any before.
    """
    with stop_on_signals(), ExitStack() as locks:
        is_ended_here = False
        try:
            with ExitStack() as starting:
                starting.enter_context(lock_stack(stack))
                if not keeps_running(stack):
                    locks.enter_context(starting.pop_all())
                    is_ended_here = True
                start_servers(stack)
            prepare_schemas(stack)
            return run_command(stack, command)
        except Stopped:
            return 130
        finally:
            if is_ended_here:
                stop_servers(stack)


def run_command(stack: Stack, command: Sequence[str]) -> int:
    """Return the command's exit code; if this process is stopped, the command is interrupted, and then killed."""
    with subprocess.Popen(command, env=os.environ | {"CHATSTORE_STACK": stack.name}) as child:
        try:
            return child.wait()
        except Stopped:
            # Ctrl-C in a terminal has already reached it; a signal sent to this process has not.
            child.send_signal(signal.SIGINT)
            try:
                child.wait(timeout=COMMAND_END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
