"""Child processes that outlive their starter: started, found again, stopped.

A process is identified by its id and its start time, both kept in a file of the stack, so that after a SIGKILL of the
starter the remaining processes are adopted or stopped, and an unrelated process that was assigned the same id since is
never touched.
"""

import json
import os
import pwd
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from chatstore.local.layout import Stack
from chatstore.local.secrets import make_private_folder
from devstack.problems import Problem

# Log lines shown for a server that died.
LAST_LINES = 12


@dataclass(frozen=True)
class Launch:
    """Parameters of a server's start. `user`: name of a system user, if the starter is root."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    user: str | None = None


def path_of_pid(stack: Stack, name: str) -> Path:
    return stack.folder / "pids" / f"{name}.json"


def path_of_log(stack: Stack, name: str) -> Path:
    return stack.logs / f"{name}.log"


def find_process(stack: Stack, name: str) -> psutil.Process | None:
    """Return the running process that was started under this name, or None."""
    try:
        kept = json.loads(path_of_pid(stack, name).read_text())
        process = psutil.Process(int(kept["pid"]))
        same = abs(process.create_time() - float(kept["started"])) < 1
        alive = same and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return process if alive else None


def start_process(stack: Stack, launch: Launch) -> psutil.Process:
    """Start a server in a session of its own, with its output appended to the log of its name."""
    return _start(stack, launch)[1]


def start_child(stack: Stack, launch: Launch) -> "subprocess.Popen[bytes]":
    """Start a process as `start_process` does; return the object whose exit code can be polled."""
    return _start(stack, launch)[0]


def _start(stack: Stack, launch: Launch) -> "tuple[subprocess.Popen[bytes], psutil.Process]":
    log = path_of_log(stack, launch.name)
    make_private_folder(log.parent)
    identity: dict[str, str | int | list[str]] = {}
    if launch.user is not None:
        record = pwd.getpwnam(launch.user)
        identity = {"user": record.pw_uid, "group": record.pw_gid, "extra_groups": []}
    with log.open("ab") as out:
        child: subprocess.Popen[bytes] = subprocess.Popen(
            list(launch.command),
            env=dict(launch.environ),
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches only the starter, which then stops its servers in order.
            start_new_session=True,
            **identity,  # type: ignore[call-overload]
        )
    # Not later: one that ends at once is gone when it is reaped.
    process = psutil.Process(child.pid)
    _store_pid(stack, launch.name, process)
    # Reap it explicitly: a zombie keeps its pid, and a killed Postgres would look alive to the next one.
    threading.Thread(target=child.wait, name=f"reap-{launch.name}", daemon=True).start()
    return child, process


def _store_pid(stack: Stack, name: str, process: psutil.Process) -> None:
    path = path_of_pid(stack, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"pid": process.pid, "started": process.create_time()}))
    draft.replace(path)


def end_processes(stack: Stack, names: Sequence[str], *, seconds: float) -> list[str]:
    """Ask all of them at once to stop, kill the remaining ones after `seconds`; return the names of those killed.

    With 0 seconds they are killed without a request before, after which a node would tell its peers that it stops. The
    children of a killed process (gunicorn's and Celery's) are killed with it.
    """
    running = {name: found for name in names if (found := find_process(stack, name))}
    families = {name: _list_family(process) for name, process in running.items()}
    for process in running.values() if seconds else ():
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    everyone = [member for family in families.values() for member in family]
    left = wait_until_ended(everyone, seconds=seconds)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    wait_until_ended(left, seconds=5)
    for name in names:
        path_of_pid(stack, name).unlink(missing_ok=True)
    return [name for name, family in families.items() if any(one in left for one in family)]


def wait_until_ended(processes: Sequence[psutil.Process], *, seconds: float) -> list[psutil.Process]:
    """Wait until all have ended, at most so long; return those that still run."""
    end = time.monotonic() + seconds
    while left := [process for process in processes if not is_dead(process)]:
        if time.monotonic() >= end:
            break
        time.sleep(0.05)
    return left


def _list_family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return [process]


def read_last_lines(path: Path, *, count: int = LAST_LINES) -> str:
    """Return the end of a log, each line indented; at most 16 KiB of it are read."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 16_384))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in lines[-count:])


def describe_death(stack: Stack, name: str) -> Problem:
    """Return the problem to raise for a server that died: its name, and the last lines of its log."""
    log = path_of_log(stack, name)
    return Problem(f"{name} died. The last lines of {log}:\n{read_last_lines(log)}")


def is_dead(process: psutil.Process) -> bool:
    """Return whether it has ended; one of our own children is reaped here.

    So has a zombie: that of an adopted server waits for init to reap it.
    """
    try:
        process.wait(timeout=0)
    except psutil.TimeoutExpired:
        return _is_zombie(process)
    except psutil.NoSuchProcess:
        return True
    return True


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
