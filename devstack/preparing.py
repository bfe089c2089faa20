"""Preparation of the pages: schemas, static files, demo accounts.

Each step stores a hash of its inputs, and is skipped while that is unchanged; the hash is only valid for the data
folders that it was stored with.
"""

import fcntl
import hashlib
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chatstore.local.layout import PROJECT_ROOT, Stack
from chatstore.local.secrets import make_private_folder
from devstack import cassandra, postgres
from devstack.problems import Problem
from devstack.processes import path_of_log, read_last_lines
from devstack.servers import is_external


@dataclass(frozen=True)
class SetupStep:
    """A `manage.py` command and the files whose change makes it due again.

    `store`: the setting that can name an external server for the step; its state there is not recorded here.
    `attempts`: how often it is run until it succeeds.
    """

    command: tuple[str, ...]
    label: str
    inputs: tuple[str, ...] = ()
    store: str | None = None
    attempts: int = 1

    @property
    def name(self) -> str:
        return self.command[0]


MIGRATE = SetupStep(
    ("migrate", "--no-input", "--verbosity=0"),
    "Postgres tables",
    ("chatstore/migrations", "moderation/migrations", "requirements.lock"),
    store="DATABASE_URL",
)
SYNC_CASSANDRA = SetupStep(
    ("sync_cassandra",),
    "Cassandra tables",
    ("chatstore/models/cassandra.py", "requirements.lock"),
    store="CASSANDRA_CONTACT_POINTS",
    # With a load of twenty, a change of the schema may take longer than the driver's ten seconds.
    attempts=3,
)
COLLECT_STATIC = SetupStep(
    ("collectstatic", "--no-input", "--clear", "--verbosity=0"),
    "static files",
    ("moderation/static", "requirements.lock"),
)
DEMO_ACCOUNTS = SetupStep(("demo_accounts", "--quiet"), "demo accounts")
SEED_DEMO = SetupStep(("seed_demo",), "demo messages")


class Children:
    """The `manage.py` processes of steps that run in several threads; once closed, none runs and none is started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def run(self, stack: Stack, step: SetupStep) -> Callable[[], int]:
        """Start a step; return a function that waits for its exit code."""
        child = self._start(stack, step)
        return lambda: self._wait(stack, step, child)

    def close(self) -> None:
        """Kill those that still run."""
        with self._lock:
            self._closed = True
            for child in self._running:
                if child.poll() is None:
                    child.kill()
        for child in self._running:
            child.wait()

    def _start(self, stack: Stack, step: SetupStep) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise Problem(f"manage.py {step.name} was not started, since the preparation was cancelled.")
            child = _start_step(stack, step)
            self._running.append(child)
        return child

    def _wait(self, stack: Stack, step: SetupStep, child: subprocess.Popen[bytes]) -> int:
        """Return the exit code of the last attempt; a step that was ended by a signal is run once more in any case.

        Cassandra's driver crashes in its C code while Python exits, once in hundreds of runs.
        """
        code = child.wait()
        attempts = max(step.attempts, 2) if code < 0 else step.attempts
        for _ in range(attempts - 1):
            if code == 0:
                break
            code = self._start(stack, step).wait()
        return code


def prepare_schemas(stack: Stack, *, report: Callable[[str], object] = len) -> None:
    """Bring tables and static files up to date. The name of each step is passed to `report`.

    Static files belong to all stacks of the servers, tables to one, so that the suite's workers prepare theirs at once.
    """
    with preparation_lock(stack):
        run_steps(stack, [COLLECT_STATIC], report=report)
    with preparation_lock(stack, stack.database):
        run_steps(stack, [MIGRATE, SYNC_CASSANDRA], report=report)


def wants_demo() -> bool:
    """Return whether to create the demonstration: only if all servers are local ones."""
    return not (is_external("DATABASE_URL") or is_external("CASSANDRA_CONTACT_POINTS"))


def run_steps(
    stack: Stack, steps: Sequence[SetupStep], *, report: Callable[[str], object], children: Children | None = None
) -> None:
    """Run the steps that are due in parallel. Raises Problem for the first that fails; whatever ends this early, above
    all Ctrl-C, stops them too, unless `children` are closed by the caller.
    """
    due = [step for step in steps if is_due(stack, step)]
    if due:
        report(f"  preparing {', '.join(step.label for step in due)}")
    used = children or Children()
    try:
        for step, wait in [(step, used.run(stack, step)) for step in due]:
            _finish_step(stack, step, wait())
    finally:
        if children is None:
            used.close()


def is_due(stack: Stack, step: SetupStep) -> bool:
    """Return whether the step's inputs have changed since it was done, or it is for an external server."""
    if step.store is not None and is_external(step.store):
        return True
    path = _path_of_fingerprint(stack, step)
    return not path.exists() or path.read_text() != compute_fingerprint(stack, step)


def compute_fingerprint(stack: Stack, step: SetupStep) -> str:
    """Return a SHA-256 over the step's inputs, its servers and their data folders."""
    fingerprint = hashlib.sha256(repr(step.command).encode())
    for path in list_files([PROJECT_ROOT / name for name in step.inputs]):
        fingerprint.update(str(path).encode())
        fingerprint.update(path.read_bytes())
    fingerprint.update(os.environ.get("CASSANDRA_KEYSPACE", "").encode())
    for folder in (postgres.NAME, *cassandra.NAMES, "static"):
        fingerprint.update(_read_identity(stack.folder / folder).encode())
    return fingerprint.hexdigest()


def list_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files and those in the folders, sorted, without compiled ones."""
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        elif path.exists():
            yield path


def _read_identity(folder: Path) -> str:
    """Return a random token stored in the folder, so that it disappears together with the data."""
    if not folder.exists():
        return "absent"
    path = folder / ".identity"
    if not path.exists():
        path.write_text(secrets.token_hex(8))
    return path.read_text()


def _path_of_fingerprint(stack: Stack, step: SetupStep) -> Path:
    """Return the path of the step's hash: per database for tables, per set of servers for static files."""
    folder = stack.folder / "stamps"
    return (folder if step.store is None else folder / stack.database) / step.name


@contextmanager
def preparation_lock(stack: Stack, part: str = "stack") -> Iterator[None]:
    """Serialize the preparation of two concurrent test runs; the second one finds nothing to do."""
    stack.folder.mkdir(parents=True, exist_ok=True)
    with (stack.folder / f"preparing-{part}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def name_command(step: SetupStep) -> list[str]:
    """Return the command line of a step."""
    return [sys.executable, str(PROJECT_ROOT / "manage.py"), *step.command]


def _start_step(stack: Stack, step: SetupStep) -> subprocess.Popen[bytes]:
    log = path_of_log(stack, step.name)
    make_private_folder(log.parent)
    with log.open("wb") as out:
        return subprocess.Popen(
            name_command(step),
            env=os.environ | {"CHATSTORE_STACK": stack.name},
            cwd=PROJECT_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def _finish_step(stack: Stack, step: SetupStep, code: int) -> None:
    if code != 0:
        log = path_of_log(stack, step.name)
        raise Problem(f"manage.py {step.name} failed. The last lines of {log}:\n{read_last_lines(log)}")
    note_done(stack, step)


def note_done(stack: Stack, step: SetupStep) -> None:
    """Record that a step was done with its current inputs."""
    path = _path_of_fingerprint(stack, step)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(compute_fingerprint(stack, step))
