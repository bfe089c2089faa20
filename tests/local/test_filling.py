"""The process that runs beside the web, with a harmless command instead of the demo import."""

import os
import time
from pathlib import Path

import pytest

from chatstore.local.layout import Stack, read_stack
from devstack.filling import NAME, DemoFill
from devstack.preparing import SetupStep, is_due
from devstack.processes import end_processes, find_process, is_dead

BEGINS = "Adding demo messages; each channel appears when it is complete."


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    chosen = read_stack({"CHATSTORE_LOCAL": str(tmp_path)}, name="test")
    chosen.folder.mkdir()
    return chosen


def make_step(code: str) -> SetupStep:
    return SetupStep(("shell", "--no-imports", "-c", code), "a step")


def fill(stack: Stack, step: SetupStep) -> list[str]:
    """Run the step to its end as `make run` does; return the reported lines."""
    reported: list[str] = []
    filling = DemoFill(stack, step, report=reported.append)
    while len(reported) == 1:
        filling.check()
        time.sleep(0.05)
    return reported


def test_a_completed_fill_is_reported_and_not_repeated(stack: Stack) -> None:
    step = make_step("pass")
    assert fill(stack, step) == [BEGINS, "Demo messages are complete."]
    assert fill(stack, step) == []


def test_a_failure_is_reported_with_its_last_lines_and_stays_due(stack: Stack) -> None:
    step = make_step("raise SystemExit('no room for the demonstration')")
    reported = fill(stack, step)
    assert len(reported) == 2
    assert reported[1].startswith("Could not add the demo messages; the next start retries.")
    assert "no room for the demonstration" in reported[1]
    assert is_due(stack, step)


@pytest.mark.parametrize("end", ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(1)"])
def test_a_crash_or_an_error_is_retried_once(stack: Stack, end: str) -> None:
    attempts = stack.folder / "attempts"
    reported = fill(stack, make_step(f"open({str(attempts)!r}, 'a').write('x'); {end}"))
    assert attempts.read_text() == "xx"
    assert reported[1].startswith("Could not add the demo messages")


def test_a_fill_left_by_a_killed_starter_is_found_and_ended(stack: Stack) -> None:
    step = make_step("import time; print('up', flush=True); time.sleep(60)")
    DemoFill(stack, step, report=len)
    process = find_process(stack, NAME)
    assert process is not None
    assert os.getpgid(process.pid) != os.getpgid(os.getpid())
    assert end_processes(stack, [NAME], seconds=10) == []
    assert is_dead(process)
    assert is_due(stack, step)
