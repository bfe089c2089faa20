"""Commands and servers with which the suite runs."""

import os
import subprocess
import sys

import pytest

from chatstore.local.layout import PROJECT_ROOT, read_stack
from tests import __main__ as suite
from tests.conftest import Scheduling

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _no_external_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "CASSANDRA_CONTACT_POINTS"):
        monkeypatch.delenv(name, raising=False)


def test_several_workers_share_it_on_one_set_of_servers() -> None:
    command = suite.name_command(["-x"], workers=3)
    assert command[3:5] == ["exec", "test"]
    assert {"--numprocesses=3", "-x"} <= set(command)


def test_one_worker_is_one_process() -> None:
    command = suite.name_command(["tests/local", "-x"], workers=1)
    assert command[3:] == ["exec", "test", sys.executable, "-m", "pytest", "tests/local", "-x"]


def test_named_servers_have_one_database_so_there_is_one_worker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://redis.example/0")
    assert "--numprocesses=3" not in suite.name_command([], workers=3)
    assert capsys.readouterr().out == "Running with one worker: REDIS_URL names a single database.\n"


@pytest.mark.parametrize(
    ("environ", "stack"),
    [
        ({}, "test"),
        ({"CHATSTORE_STACK": "run"}, "test"),
        ({"CHATSTORE_STACK": "test2"}, "test2"),
        ({"CHATSTORE_STACK": "bench"}, "bench"),
        ({"CHATSTORE_STACK": "test", "PYTEST_XDIST_WORKER": "gw0"}, "test"),
        ({"CHATSTORE_STACK": "test", "PYTEST_XDIST_WORKER": "gw1"}, "test2"),
        ({"CHATSTORE_STACK": "test", "PYTEST_XDIST_WORKER": "gw2"}, "test3"),
    ],
)
def test_a_worker_has_the_servers_of_its_number_and_never_those_of_a_run(environ: dict[str, str], stack: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", "import tests.settings as s; print(s.STACK.name, s.DATABASES['default']['NAME'])"],
        cwd=PROJECT_ROOT,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.split() == [stack, read_stack({}, name=stack).database]


@pytest.mark.parametrize(
    ("nodeid", "together"),
    [
        ("tests/imports/test_files.py::test_a[x::y]", "tests/imports/test_files.py"),
        ("tests/outage/test_findings.py::test_b", "tests/outage"),
        ("tests/pages/browser/test_maintenance.py::test_c", "tests/pages/browser"),
        ("tests/pages/browser/test_accessibility.py::test_e[x]", "tests/pages/browser/test_accessibility.py"),
        ("tests/pages/test_csp.py::test_d", "tests/pages/test_csp.py"),
    ],
)
def test_one_worker_runs_a_file_or_a_folder_that_shares_its_processes(nodeid: str, together: str) -> None:
    scheduling = object.__new__(Scheduling)
    assert scheduling._split_scope(nodeid) == together


def test_the_file_with_processes_of_its_own_exists() -> None:
    assert (PROJECT_ROOT / Scheduling.LONG).exists()


def test_every_grouped_folder_exists() -> None:
    assert [folder for folder in Scheduling.FOLDERS if not (PROJECT_ROOT / folder / "conftest.py").exists()] == []
