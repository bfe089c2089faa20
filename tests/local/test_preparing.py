import shutil
import signal
from pathlib import Path
from types import FrameType

import pytest

from chatstore.local.layout import Stack, read_stack
from devstack.preparing import SetupStep, is_due, run_steps
from devstack.problems import Problem
from devstack.processes import path_of_log
from devstack.running import Stopped


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    chosen = read_stack({"CHATSTORE_LOCAL": str(tmp_path)}, name="test")
    (chosen.folder / "postgres").mkdir(parents=True)
    return chosen


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "0001_initial.py").write_text("one")
    return folder


def prepare(stack: Stack, step: SetupStep) -> list[str]:
    reported: list[str] = []
    run_steps(stack, [step] if is_due(stack, step) else [], report=reported.append)
    return reported


def make_step(inputs: Path) -> SetupStep:
    return SetupStep(("version",), "a step", (str(inputs),), store="DATABASE_URL")


def test_an_unchanged_step_is_skipped(stack: Stack, inputs: Path) -> None:
    step = make_step(inputs)
    assert prepare(stack, step) == ["  preparing a step"]
    assert prepare(stack, step) == []


@pytest.mark.slow
def test_a_changed_or_added_file_makes_a_step_due(stack: Stack, inputs: Path) -> None:
    step = make_step(inputs)
    prepare(stack, step)
    (inputs / "0001_initial.py").write_text("two")
    assert prepare(stack, step)
    (inputs / "0002_more.py").write_text("")
    assert prepare(stack, step)
    assert not prepare(stack, step)


def test_compiled_files_change_nothing(stack: Stack, inputs: Path) -> None:
    step = make_step(inputs)
    prepare(stack, step)
    (inputs / "__pycache__").mkdir()
    (inputs / "__pycache__" / "0001_initial.pyc").write_bytes(b"compiled")
    assert not is_due(stack, step)


def test_a_step_is_due_again_when_its_data_is_gone(stack: Stack, inputs: Path) -> None:
    step = make_step(inputs)
    prepare(stack, step)
    shutil.rmtree(stack.folder / "postgres")
    (stack.folder / "postgres").mkdir()
    assert is_due(stack, step)


def test_nothing_is_recorded_for_external_servers(stack: Stack, inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = make_step(inputs)
    prepare(stack, step)
    monkeypatch.setenv("DATABASE_URL", "postgres://db.example/chatstore")
    assert is_due(stack, step)


def test_a_failed_step_is_reported_with_its_last_lines_and_stays_due(stack: Stack) -> None:
    step = SetupStep(("no_such_command",), "nothing")
    with pytest.raises(Problem, match=r"manage\.py no_such_command failed[\s\S]*Unknown command"):
        prepare(stack, step)
    assert is_due(stack, step)


@pytest.mark.slow
def test_a_step_with_several_attempts_is_run_until_it_succeeds(stack: Stack) -> None:
    attempts = stack.folder / "attempts"
    code = (
        f"path = {str(attempts)!r}; open(path, 'a').write('x')\n"
        "if len(open(path).read()) < 3: raise SystemExit('no agreement about the schema')"
    )
    step = SetupStep(("shell", "--no-imports", "-c", code), "a step", attempts=3)
    prepare(stack, step)
    assert attempts.read_text() == "xxx"
    assert not is_due(stack, step)


def test_ctrl_c_ends_a_running_step(stack: Stack) -> None:
    began = stack.folder / "began"
    code = f"import pathlib, time; pathlib.Path({str(began)!r}).touch(); time.sleep(60); print('it ended')"
    step = SetupStep(("shell", "--no-imports", "-c", code), "a long step")

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        with pytest.raises(Stopped):
            prepare(stack, step)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "it ended" not in path_of_log(stack, "shell").read_text()
    assert is_due(stack, step)
