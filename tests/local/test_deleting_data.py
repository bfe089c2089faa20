"""Deletion of what a stack's servers have stored, before benchmarks on fresh servers."""

from pathlib import Path

import pytest

from chatstore.local.layout import Stack, read_stack
from devstack.problems import Problem
from devstack.servers import delete_data, keeps_running, lock_stack, set_keep_running

pytestmark = pytest.mark.unit


def make_stack(root: Path, name: str) -> Stack:
    """Return a stack whose servers have stored something and run until `down`."""
    stack = read_stack({"CHATSTORE_LOCAL": str(root)}, name=name)
    (stack.folder / "postgres").mkdir(parents=True)
    (stack.folder / "postgres" / "data").write_text("rows")
    (stack.folder / "notes").write_text("kept by nobody")
    set_keep_running(stack, kept=True)
    return stack


def test_everything_but_the_lock_is_deleted(tmp_path: Path) -> None:
    stack = make_stack(tmp_path, "bench")
    with lock_stack(stack):
        delete_data(stack)
        assert [path.name for path in stack.folder.iterdir()] == ["lock"]
        # A second starter is refused still.
        with pytest.raises(Problem), lock_stack(stack):
            pass
    assert not keeps_running(stack)


def test_the_data_of_people_is_never_deleted(tmp_path: Path) -> None:
    stack = make_stack(tmp_path, "run")
    before = sorted(path.name for path in stack.folder.rglob("*"))
    with pytest.raises(Problem):
        delete_data(stack)
    assert sorted(path.name for path in stack.folder.rglob("*")) == before


def test_a_link_in_the_folder_is_deleted_and_not_what_it_points_to(tmp_path: Path) -> None:
    stack, elsewhere = make_stack(tmp_path / "local", "bench"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (stack.folder / "link").symlink_to(elsewhere)
    delete_data(stack)
    assert (elsewhere / "file").exists()
    assert not (stack.folder / "link").exists()
