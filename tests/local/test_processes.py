"""Real child processes in a stack with a temporary folder."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from chatstore.local.layout import Stack, read_stack
from devstack.problems import Problem
from devstack.processes import (
    Launch,
    describe_death,
    end_processes,
    find_process,
    is_dead,
    path_of_pid,
    start_process,
    wait_until_ended,
)
from devstack.servers import Server, wait_until_ready
from tests.processes import wait_until_dead

SLEEP_CODE = "import time; time.sleep(60)"
IGNORE_SIGTERM_CODE = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print('deaf', flush=True); time.sleep(60)"
)


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    chosen = read_stack({"CHATSTORE_LOCAL": str(tmp_path)}, name="test")
    chosen.folder.mkdir()
    return chosen


def start(stack: Stack, name: str, code: str) -> psutil.Process:
    launch = Launch(name, [sys.executable, "-c", code], dict(os.environ), stack.folder)
    return start_process(stack, launch)


def test_processes_of_a_killed_starter_are_found_by_pid_and_start_time(stack: Stack) -> None:
    process = start(stack, "sleeping", SLEEP_CODE)
    found = find_process(stack, "sleeping")
    assert found is not None
    assert found.pid == process.pid
    assert end_processes(stack, ["sleeping"], seconds=5) == []
    assert is_dead(process)
    assert find_process(stack, "sleeping") is None


def test_an_unrelated_process_with_the_same_pid_is_neither_found_nor_ended(stack: Stack) -> None:
    process = start(stack, "sleeping", SLEEP_CODE)
    kept = path_of_pid(stack, "sleeping")
    started = json.loads(kept.read_text())["started"]
    kept.write_text(json.dumps({"pid": process.pid, "started": started - 3600}))
    try:
        assert find_process(stack, "sleeping") is None
        end_processes(stack, ["sleeping"], seconds=1)
        assert not is_dead(process)
    finally:
        process.kill()
        process.wait(5)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"pid": "x", "started": 1}'])
def test_a_truncated_pid_file_is_ignored(stack: Stack, content: str) -> None:
    path = path_of_pid(stack, "sleeping")
    path.parent.mkdir()
    path.write_text(content)
    assert find_process(stack, "sleeping") is None


def test_a_process_that_gets_no_time_is_killed_without_a_request_to_stop(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(psutil.Process, "terminate", lambda process: asked.append(process.pid))
    process = start(stack, "sleeping", SLEEP_CODE)
    assert end_processes(stack, ["sleeping"], seconds=0) == ["sleeping"]
    assert is_dead(process)
    assert asked == []


def test_a_process_that_does_not_end_in_time_is_killed_with_its_children(stack: Stack) -> None:
    process = start(stack, "stubborn", IGNORE_SIGTERM_CODE)
    while b"deaf" not in (stack.logs / "stubborn.log").read_bytes():
        assert not is_dead(process)
    children = process.children()
    assert children
    assert end_processes(stack, ["stubborn"], seconds=0.3) == ["stubborn"]
    assert all(map(is_dead, children))


def test_all_are_asked_to_end_at_once(stack: Stack) -> None:
    names = ["one", "two", "three"]
    asked = [str(stack.folder / f"{name}.asked") for name in names]
    # Each process ends only after all have received the signal.
    slow = (
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    pathlib.Path({mine!r}).touch()\n"
        "    while not all(pathlib.Path(one).exists() for one in {asked!r}): time.sleep(0.01)\n"
        "    sys.exit()\n"
        "signal.signal(15, end); print('up', flush=True); time.sleep(600)"
    )
    processes = [
        start(stack, name, slow.format(mine=mine, asked=asked)) for name, mine in zip(names, asked, strict=True)
    ]
    for name in names:
        while b"up" not in (stack.logs / f"{name}.log").read_bytes():
            pass
    # If they were signalled one after the other, the first would have to be killed.
    assert end_processes(stack, names, seconds=60) == []
    assert all(is_dead(process) for process in processes)


def test_a_killed_server_releases_its_pid(stack: Stack) -> None:
    process = start(stack, "sleeping", SLEEP_CODE)
    os.kill(process.pid, signal.SIGKILL)
    end = time.monotonic() + 300
    while psutil.pid_exists(process.pid):
        assert time.monotonic() < end, "the process was not reaped"
        time.sleep(0.01)


def test_a_process_that_its_parent_does_not_reap_has_ended() -> None:
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            child = psutil.Process(int(parent.stdout.readline()))
            assert wait_until_ended([child], seconds=0) == [child]
            child.kill()
            assert wait_until_ended([child], seconds=60) == []
            assert child.is_running()
        finally:
            parent.kill()


def test_a_server_that_dies_is_reported_with_its_last_lines(stack: Stack) -> None:
    start(stack, "valkey", "import sys; print('first'); sys.exit('no room for the log')")
    server = Server("valkey", "127.0.0.1", 1, lambda: pytest.fail("it is not started again"))
    with pytest.raises(Problem, match=r"valkey died\.[\s\S]*no room for the log"):
        wait_until_ready(stack, server)


def test_a_server_that_ends_before_it_is_looked_at_was_started_all_the_same(stack: Stack) -> None:
    launch = Launch("short", ["true"], dict(os.environ), stack.folder)
    for _ in range(50):
        assert wait_until_dead(start_process(stack, launch), seconds=10)


def test_only_the_last_lines_of_a_long_log_are_reported(stack: Stack) -> None:
    process = start(stack, "talker", "print('\\n'.join(f'line {n}' for n in range(100_000)))")
    assert wait_until_dead(process, seconds=10)
    lines = str(describe_death(stack, "talker")).splitlines()
    assert lines[1:] == [f"    line {n}" for n in range(99_988, 100_000)]


def test_ctrl_c_in_the_starter_s_terminal_does_not_reach_the_servers(stack: Stack) -> None:
    process = start(stack, "sleeping", SLEEP_CODE)
    assert os.getpgid(process.pid) != os.getpgid(os.getpid())
    process.send_signal(signal.SIGTERM)
    assert wait_until_dead(process, seconds=5)
