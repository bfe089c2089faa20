import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chatstore.local.layout import PROJECT_ROOT
from tests.conftest import refuse_servers
from tests.waiting import wait_until

NEEDS_SERVERS = "tests/chatstore/operations/test_findings.py"
NOT_UP = "The test servers are not up"


@pytest.mark.parametrize(
    ("database", "keyspace", "refused"),
    [
        ("chatstore_test", "chatstore_test", None),
        ("chatstore", "chatstore_test", "database"),
        ("chatstore_test", "chatstore", "keyspace"),
        ("chatstore_test2", "chatstore_test", "database"),
    ],
)
def test_only_databases_whose_name_ends_in_test_are_used(database: str, keyspace: str, refused: str | None) -> None:
    refusal = refuse_servers(database=database, keyspace=keyspace)
    assert refusal is None if refused is None else f"the {refused} must end in _test" in str(refusal)


def test_a_session_on_another_keyspace_ends_before_its_first_test() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/local/test_network.py", "-q"],
        cwd=PROJECT_ROOT,
        env=os.environ | {"CASSANDRA_KEYSPACE": "production"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 4
    assert "the keyspace must end in _test, not be 'production'" in answer.stdout + answer.stderr
    assert "passed" not in answer.stdout


@pytest.mark.slow
def test_a_waiting_first_test_queries_no_node_before_the_keyspace_exists(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    with (tmp_path / "locks" / "queue.lock").open("a") as queue_lock:
        fcntl.flock(queue_lock, fcntl.LOCK_EX)
        session = run_without_servers(tmp_path)
        wait_until((tmp_path / "locks" / "tests.lock").exists)
        time.sleep(0.5)
    output, _ = session.communicate()
    assert "INTERNALERROR" not in output
    assert NOT_UP in output


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--numprocesses=2", "--max-worker-restart=0"]])
def test_a_session_whose_servers_are_down_reports_it_and_fails(tmp_path: Path, workers: list[str]) -> None:
    session = run_without_servers(tmp_path, *workers)
    output, _ = session.communicate()
    assert session.returncode not in {0, 3}
    assert "INTERNALERROR" not in output
    assert NOT_UP in output


def run_without_servers(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Run a test that needs servers in a session of its own, with its locks in the folder."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free_port = str(server.getsockname()[1])
    ports = {f"CHATSTORE_TEST_{name}_PORT": free_port for name in ("POSTGRES", "CASSANDRA")}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", NEEDS_SERVERS, *options],
        cwd=PROJECT_ROOT,
        env=environ | {"CHATSTORE_LOCAL": str(folder)} | ports,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
