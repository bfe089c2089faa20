"""`make run` without its own Cassandra, which the environment redirects to the test nodes.

Postgres, Valkey, the web, the workers and beat are real, with their own ports and folder. The drill of CI covers start
and stop of Cassandra.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from chatstore.local.layout import PROJECT_ROOT, STACK_NAMES, TEST_STACK_NAMES, Stack, read_stack
from devstack.cassandra import prepare_node
from devstack.postgres import prepare_postgres
from devstack.problems import Problem
from devstack.processes import end_processes, find_process, is_dead
from devstack.valkey import prepare_valkey

STORES = ("postgres", "valkey")
WEB = ("web", "beat", "worker", "previews", "maintenance")
READY_SECONDS = 300


def find_free_ports(count: int) -> list[int]:
    with ExitStack() as exit_stack:
        probes = [exit_stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@dataclass
class LocalStack:
    """A private stack and the starters launched for it."""

    environ: dict[str, str]
    stack: Stack
    starters: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Run the starter, or a command that calls it, until it reports that all is ready."""
        starter = subprocess.Popen(
            command or [sys.executable, "-m", "devstack", "run"],
            cwd=PROJECT_ROOT,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.starters.append(starter)
        wait_for_line(starter, "Press Ctrl-C to stop everything.")
        return starter

    def call(self, command: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of `devstack` to its end."""
        return subprocess.run(
            [sys.executable, "-m", "devstack", *command.split()],
            cwd=PROJECT_ROOT,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def find(self, *names: str) -> dict[str, int]:
        """Return the pids of the running processes."""
        return {name: found.pid for name in names if (found := find_process(self.stack, name))}


def wait_for_line(starter: "subprocess.Popen[str]", beginning: str) -> None:
    assert starter.stdout is not None
    alarm = threading.Timer(READY_SECONDS, starter.kill)
    alarm.start()
    try:
        for line in starter.stdout:
            if line.startswith(beginning):
                return
        assert starter.stderr is not None
        pytest.fail(f"no line began with {beginning!r}: {starter.stderr.read()}")
    finally:
        alarm.cancel()


@pytest.fixture(scope="module")
def own_folder() -> Iterator[Path]:
    """A folder shared by the tests of this module, so that prepared data is reused."""
    # Not pytest's own folder: if root runs the suite, Postgres's user may not enter that one.
    root = read_stack(os.environ).folder / "places" / secrets.token_hex(4)
    root.mkdir(parents=True)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def local_stack(own_folder: Path) -> Iterator[LocalStack]:
    web, postgres, valkey = find_free_ports(3)
    config = settings.CASSANDRA
    own = {
        "CHATSTORE_LOCAL": str(own_folder),
        "CHATSTORE_STACK": "run",
        "CHATSTORE_WEB_PORT": str(web),
        "CHATSTORE_POSTGRES_PORT": str(postgres),
        "CHATSTORE_VALKEY_PORT": str(valkey),
        "CASSANDRA_CONTACT_POINTS": ",".join(config["contact_points"]),
        "CASSANDRA_PORT": str(config["port"]),
        "CASSANDRA_DATACENTER": config["datacenter"],
        "CASSANDRA_REPLICATION": ",".join(f"{name}:{n}" for name, n in config["replication"].items()),
        "CASSANDRA_KEYSPACE": config["keyspace"],
        "CASSANDRA_USER": config["user"],
        "CASSANDRA_PASSWORD": config["password"],
        # pytest-django exports the suite's own settings, which only know the test stack.
        "DJANGO_SETTINGS_MODULE": "chatstore.settings",
    }
    chosen = LocalStack(os.environ | own, read_stack(own))
    yield chosen
    for starter in chosen.starters:
        if starter.poll() is None:
            os.killpg(starter.pid, signal.SIGKILL)
        starter.communicate()
    end_processes(chosen.stack, [*WEB, *STORES], seconds=10)


def list_family(pids: dict[str, int]) -> list[psutil.Process]:
    heads = [psutil.Process(pid) for pid in pids.values()]
    return [one for head in heads for one in (head, *head.children(recursive=True))]


@pytest.mark.slow
@pytest.mark.alone
def test_ctrl_c_ends_everything_within_eight_seconds(local_stack: LocalStack) -> None:
    starter = local_stack.start()
    pids = local_stack.find(*WEB, *STORES)
    assert set(pids) == {*WEB, *STORES}
    family = list_family(pids)
    began = time.monotonic()
    os.killpg(starter.pid, signal.SIGINT)
    # A second Ctrl-C does not cut the shutdown short.
    time.sleep(0.2)
    os.killpg(starter.pid, signal.SIGINT)
    out, err = starter.communicate(timeout=300)
    assert time.monotonic() - began < 8
    assert starter.returncode == 0, err
    assert out.splitlines()[-1] == "All servers stopped. Stored data is kept for the next start."
    assert not [process for process in family if not is_dead(process)]


@pytest.mark.slow
def test_a_sigint_to_make_alone_ends_everything_too(local_stack: LocalStack, tmp_path: Path) -> None:
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"run:\n\t@{sys.executable} -m devstack run\n")
    make = local_stack.start("make", "-f", str(makefile), "run")
    family = list_family(local_stack.find(*WEB, *STORES))
    make.send_signal(signal.SIGINT)
    make.communicate(timeout=300)
    assert not [process for process in family if not is_dead(process)]


@pytest.mark.slow
def test_after_a_sigkill_stores_are_adopted_and_the_web_is_restarted(local_stack: LocalStack) -> None:
    starter = local_stack.start()
    stores, web = local_stack.find(*STORES), local_stack.find(*WEB)
    starter.kill()
    starter.communicate()
    assert local_stack.find(*STORES, *WEB) == stores | web
    local_stack.start()
    assert local_stack.find(*STORES) == stores
    again = local_stack.find(*WEB)
    assert set(again) == set(WEB)
    assert not set(again.values()) & set(web.values())


@pytest.mark.slow
def test_a_second_starter_is_refused_while_the_first_one_runs(local_stack: LocalStack) -> None:
    local_stack.start()
    before = local_stack.find(*WEB, *STORES)
    second = local_stack.call("run")
    assert second.returncode == 1
    assert second.stderr == "Another terminal is already running the run servers.\n"
    assert local_stack.find(*WEB, *STORES) == before


@pytest.mark.slow
def test_a_server_that_dies_later_ends_all_with_its_last_lines(local_stack: LocalStack) -> None:
    starter = local_stack.start()
    worker = psutil.Process(local_stack.find("valkey")["valkey"])
    worker.kill()
    _, err = starter.communicate(timeout=300)
    assert starter.returncode == 1
    assert err.startswith("valkey died. The last lines of ")
    assert "Ready to accept connections" in err
    assert local_stack.find(*WEB, *STORES) == {}


@pytest.mark.slow
def test_servers_started_for_a_command_end_with_it_unless_up_keeps_them(local_stack: LocalStack) -> None:
    command = f"{sys.executable} -c pass"
    assert local_stack.call(f"exec run {command}").returncode == 0
    assert local_stack.find(*STORES) == {}
    assert local_stack.call("up run").returncode == 0
    kept = local_stack.find(*STORES)
    assert set(kept) == set(STORES)
    assert local_stack.call(f"exec run {command}").returncode == 0
    assert local_stack.find(*STORES) == kept
    assert local_stack.call("down run").returncode == 0
    assert local_stack.find(*STORES) == {}


def test_the_databases_of_the_suite_are_on_one_set_of_servers(local_stack: LocalStack) -> None:
    names = ("CASSANDRA", "CASSANDRA_STORAGE", "CASSANDRA_JMX", "CASSANDRA_JMX_2")
    ports = {f"CHATSTORE_TEST_{name}_PORT": str(port) for name, port in zip(names, find_free_ports(4), strict=True)}
    stacks = [read_stack(local_stack.environ | ports, name=name) for name in TEST_STACK_NAMES]
    first, *others = ([launch_of(stack, index) for index in (0, 1)] for stack in stacks)
    assert all(launches == first for launches in others)
    assert len({stack.database for stack in stacks}) == len({stack.valkey_database for stack in stacks}) == len(stacks)


def test_only_nodes_of_the_suite_run_without_the_second_compiler(local_stack: LocalStack) -> None:
    names = ("CASSANDRA", "CASSANDRA_STORAGE", "CASSANDRA_JMX", "CASSANDRA_JMX_2")
    pairs = [(stack, name) for stack in ("TEST", "BENCH") for name in names]
    ports = {
        f"CHATSTORE_{stack}_{name}_PORT": str(port)
        for (stack, name), port in zip(pairs, find_free_ports(len(pairs)), strict=True)
    }
    stacks = [read_stack(local_stack.environ | ports, name=name) for name in STACK_NAMES]
    single = {stack.name: "-XX:TieredStopAtLevel=1" in launch_of(stack, 0)[0] for stack in stacks}
    assert single == {"run": False, "test": True, "test2": True, "test3": True, "bench": False}


def launch_of(stack: Stack, index: int) -> tuple[Sequence[str], str]:
    """Return the command of a node and its configuration."""
    launch = prepare_node(stack, index)
    return launch.command, (launch.folder / "cassandra.yaml").read_text()


@pytest.mark.parametrize("server", ["web", "postgres", "valkey"])
def test_a_taken_port_is_one_line_and_nothing_is_left(local_stack: LocalStack, server: str) -> None:
    port = getattr(local_stack.stack.ports, server)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        refused = local_stack.call("run")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"Port {port} on 127.0.0.1 ({server}) is taken. Stop the process that uses it, "
        f"or set CHATSTORE_{server.upper()}_PORT to a free port.\n"
    )
    assert local_stack.find(*WEB, *STORES) == {}


def test_a_wrong_port_setting_is_one_line(local_stack: LocalStack) -> None:
    refused = local_stack.call("up run", CHATSTORE_WEB_PORT="443")
    assert refused.returncode == 1
    assert refused.stderr == "CHATSTORE_WEB_PORT must be a port from 1024 to 65535, not '443'.\n"


def test_the_broker_password_is_readable_only_by_its_owner(local_stack: LocalStack) -> None:
    launch = prepare_valkey(local_stack.stack)
    configuration = Path(launch.command[1])
    assert configuration.stat().st_mode & 0o077 == 0
    assert "requirepass" in configuration.read_text()
    assert (local_stack.stack.folder / "secrets").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts Postgres under another user")
def test_a_folder_the_postgres_user_cannot_enter_is_reported_and_not_changed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    environ = {"CHATSTORE_LOCAL": str(closed), "CHATSTORE_POSTGRES_PORT": str(find_free_ports(1)[0])}
    with pytest.raises(Problem, match="who has no access to"):
        prepare_postgres(read_stack(environ))
    assert closed.stat().st_mode & 0o777 == 0o700
