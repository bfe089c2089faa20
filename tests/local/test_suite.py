"""How the suite is run, and on which servers."""

import os
import subprocess
import sys

import pytest

from chatstore.local.layout import PROJECT_ROOT, read_stack
from tests import __main__ as suite

EACH_GIB = 4


@pytest.fixture(autouse=True)
def _no_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "CASSANDRA_CONTACT_POINTS"):
        monkeypatch.delenv(name, raising=False)


def have(monkeypatch: pytest.MonkeyPatch, *, gib: int) -> None:
    """As if so much memory were free."""
    monkeypatch.setattr(suite, "measure_free_memory", lambda: gib * 1024**3)


def test_two_workers_share_it_with_servers_each(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, gib=2 * EACH_GIB)
    command = suite.name_command(["-x"], workers=2)
    assert command[3:6] == ["exec", "--beside=test2", "test"]
    assert {"--numprocesses=2", "-x"} <= set(command)


def test_it_is_one_process_on_one_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, gib=2 * EACH_GIB)
    command = suite.name_command(["tests/local", "-x"], workers=1)
    assert command[3:] == ["exec", "test", sys.executable, "-m", "pytest", "tests/local", "-x"]


def test_too_little_memory_for_two_is_said_and_enough_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    have(monkeypatch, gib=2 * EACH_GIB - 1)
    assert suite.name_command([], workers=2)[3:5] == ["exec", "test"]
    assert capsys.readouterr().out == (
        "One test after the other: only 7.0 GiB of memory are free, two sets of servers need 8.\n"
    )


def test_named_servers_are_one_set(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, gib=2 * EACH_GIB)
    monkeypatch.setenv("REDIS_URL", "redis://redis.example/0")
    assert suite.name_command([], workers=2)[3:5] == ["exec", "test"]


@pytest.mark.parametrize(
    ("environ", "stack"),
    [
        ({}, "test"),
        ({"CHATSTORE_STACK": "run"}, "test"),
        ({"CHATSTORE_STACK": "test2"}, "test2"),
        ({"CHATSTORE_STACK": "test", "PYTEST_XDIST_WORKER": "gw0"}, "test"),
        ({"CHATSTORE_STACK": "test", "PYTEST_XDIST_WORKER": "gw1"}, "test2"),
    ],
)
def test_a_worker_has_the_servers_of_its_number_and_nobody_those_of_a_run(environ: dict[str, str], stack: str) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", "import tests.settings as s; print(s.STACK.name, s.DATABASES['default']['NAME'])"],
        cwd=PROJECT_ROOT,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.split() == [stack, read_stack({}, name=stack).database]
