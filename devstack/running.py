"""`make run`: everything up, watched until Ctrl-C, then everything down.

Web, beat and worker end first, then all stores at once. What a SIGKILL of this process
leaves behind is found by pid and start time at the next start: stores are adopted, the
rest is ended and started anew, since its code may have changed.
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
from devstack.filling import Filling
from devstack.preparing import (
    COLLECT_STATIC,
    DEMO_ACCOUNTS,
    MIGRATE,
    SYNC_CASSANDRA,
    Children,
    has_demo,
    prepare_schemas,
    run_steps,
    take_turns,
)
from devstack.processes import Launch, end_processes, find_process, is_dead, start_process, tell_death
from devstack.servers import (
    Server,
    hold_stack,
    is_kept,
    list_servers,
    start_servers,
    stop_servers,
    wait_until_ready,
)

WATCH_SECONDS = 0.5
# What a command beside the servers may take to end, before the servers themselves.
COMMAND_END_SECONDS = 5


class Stopped(BaseException):
    """Ctrl-C or its like. No Exception, so that nothing on the way takes it for an error."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raises Stopped at the first SIGINT, SIGTERM or SIGHUP; later ones change nothing,
    so that an impatient second Ctrl-C does not cut the stopping short."""

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
    """Starts everything and stays; 0 after Ctrl-C. Raises Problem for what goes wrong."""
    with hold_stack(stack), stop_on_signals():
        try:
            began = time.monotonic()
            start_everything(stack)
            print_welcome(stack, seconds=time.monotonic() - began)
            watch(stack, Filling(stack, tell=say) if has_demo() else None)
        except Stopped:
            say("Stopping")
        finally:
            stop_everything(stack)
        say("All stopped; what was stored is there the next time.")
    return 0


def start_everything(stack: Stack) -> None:
    """Leaves stores, schemas, demo accounts, the web and its workers up. Raises Problem.

    What needs Postgres alone is done while the nodes still start.
    """
    end_clients(stack)
    launches = {launch.name: launch for launch in web.list_launches(stack, host=read_web_host())}
    say("Starting Cassandra, Postgres and Valkey")
    with take_turns(stack), ThreadPoolExecutor(1) as threads, closing(Children()) as children:
        early: list[Future[None]] = []

        def begin_early() -> None:
            early.append(threads.submit(prepare_web, stack, launches["web"], children))

        started = start_servers(stack, when_postgres_is_up=begin_early)
        say(f"  started: {', '.join(started) or 'nothing, all were running'}")
        run_steps(stack, [SYNC_CASSANDRA], tell=say, children=children)
        early[0].result()
    wait_until_ready(stack, describe_web(stack))
    web.check_page(stack, host=read_web_host(), name=urlsplit(read_base_url(stack)).netloc)
    # After the first page, which would be later beside three more processes that load the project.
    for name in web.NAMES:
        if name != "web":
            start_process(stack, launches[name])


def prepare_web(stack: Stack, launch: Launch, children: Children) -> None:
    """Bring up to date what the web needs of Postgres and of files, then start it."""
    run_steps(stack, [MIGRATE, COLLECT_STATIC], tell=say, children=children)
    start_process(stack, launch)
    if has_demo():
        run_steps(stack, [DEMO_ACCOUNTS], tell=say, children=children)


def end_clients(stack: Stack) -> list[str]:
    """End all that uses the stores; return the names of those that had to be killed."""
    return end_processes(stack, [*web.NAMES, filling.NAME], seconds=web.WEB_END_SECONDS)


def describe_web(stack: Stack) -> Server:
    return Server("web", read_web_host(), stack.ports.web, lambda: web.list_launches(stack)[0])


def read_web_host() -> str:
    """Where gunicorn listens; the settings refuse plain http on more than loopback."""
    return os.environ.get("CHATSTORE_WEB_HOST") or "127.0.0.1"


def read_base_url(stack: Stack) -> str:
    return os.environ.get("BASE_URL") or f"http://127.0.0.1:{stack.ports.web}"


def print_welcome(stack: Stack, *, seconds: float) -> None:
    accounts = stack.folder / "accounts.txt"
    say("")
    say(f"Chatstore is ready after {seconds:.0f} s: {read_base_url(stack)}")
    if accounts.exists():
        say("Accounts:")
        for line in accounts.read_text().splitlines():
            say(f"  {line}")
    say(f"Logs: {stack.logs}")
    say("Ctrl-C stops everything.")


def watch(stack: Stack, demo: Filling | None) -> None:
    """Returns never; raises Problem when one of the processes has died, Stopped when the
    `make` that started us was told to stop."""
    names = [*web.NAMES, *(server.name for server in list_servers(stack))]
    processes = {name: find_process(stack, name) for name in names}
    while True:
        for name, process in processes.items():
            if process is None or is_dead(process):
                raise tell_death(stack, name)
        if demo is not None:
            demo.check()
        if is_make_interrupted(os.getppid()):
            raise Stopped
        time.sleep(WATCH_SECONDS)


def is_make_interrupted(pid: int) -> bool:
    """Whether the process is a `make` that has had a SIGINT.

    Ctrl-C reaches us too, but of a SIGINT that is sent to make alone we hear nothing: make
    then waits in its handler, the signal blocked, for its children to end. On Linux that
    mask can be read; elsewhere this is always False.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        blocked = int(status["SigBlk"], 16)
    except (OSError, KeyError, ValueError):
        return False
    return status["Name"] == "make" and bool(blocked & 1 << signal.SIGINT - 1)


def stop_everything(stack: Stack) -> None:
    """Web, beat and workers first, then all stores at once."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    killed = end_clients(stack) + stop_servers(stack)
    if killed:
        say(f"These did not end in time and were killed: {', '.join(killed)}.")


def say(line: str) -> None:
    print(line, flush=True)


def run_beside_servers(stack: Stack, command: Sequence[str]) -> int:
    """Runs a command on the servers of the stack, which it is told; its exit code.

    Servers that `up` is to keep are left running; others, be they what a SIGKILL left, are
    ended, and no other starter may start or end any before.
    """
    with stop_on_signals(), ExitStack() as held:
        is_ended_here = False
        try:
            with ExitStack() as starting:
                starting.enter_context(hold_stack(stack))
                if not is_kept(stack):
                    held.enter_context(starting.pop_all())
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
    """The command's exit code; when we are stopped it is told to stop, and then killed."""
    with subprocess.Popen(command, env=os.environ | {"CHATSTORE_STACK": stack.name}) as child:
        try:
            return child.wait()
        except Stopped:
            # Ctrl-C in a terminal has reached it already; a signal sent to us has not.
            child.send_signal(signal.SIGINT)
            try:
                child.wait(timeout=COMMAND_END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
