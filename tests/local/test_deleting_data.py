"""Deletion of what a stack's servers have stored, before benchmarks on fresh servers."""

from pathlib import Path

import pytest

from chatstore.local.layout import Stack, read_stack
from devstack import commitlogs
from devstack.problems import Problem
from devstack.servers import delete_data, lock_stack, set_keep_running

pytestmark = pytest.mark.unit


def make_stack(root: Path, name: str) -> Stack:
    """Return a stack whose servers have stored something."""
    stack = read_stack({"CHATSTORE_LOCAL": str(root)}, name=name)
    (stack.folder / "postgres").mkdir(parents=True)
    (stack.folder / "postgres" / "data").write_text("rows")
    (stack.folder / "accounts.txt").touch()
    return stack


def test_everything_but_the_lock_is_deleted(tmp_path: Path) -> None:
    stack = make_stack(tmp_path, "bench")
    with lock_stack(stack):
        delete_data(stack)
        assert [path.name for path in stack.folder.iterdir()] == ["lock"]
        # A second starter is refused still.
        with pytest.raises(Problem), lock_stack(stack):
            pass


def test_the_data_of_people_is_never_deleted(tmp_path: Path) -> None:
    stack = make_stack(tmp_path, "run")
    with pytest.raises(Problem):
        delete_data(stack)
    assert (stack.folder / "postgres" / "data").exists()


def test_data_of_servers_that_may_be_in_use_is_not_deleted(tmp_path: Path) -> None:
    stack = make_stack(tmp_path, "bench")
    set_keep_running(stack, kept=True)
    with pytest.raises(Problem, match="devstack down bench"):
        delete_data(stack)
    assert (stack.folder / "postgres" / "data").exists()


def test_commit_logs_in_memory_go_with_the_data_that_they_belong_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack, tmpfs = make_stack(tmp_path / "local", "bench"), tmp_path / "shm"
    node = stack.folder / "cassandra-1"
    node.mkdir()
    (node / ".commitlog").write_text("0123")
    commit_log = tmpfs / "chatstore-commitlog-0123"
    commit_log.mkdir(parents=True)
    (commit_log / "node").write_text(str(node))
    monkeypatch.setattr(commitlogs.remove_orphans, "__kwdefaults__", {"tmpfs": tmpfs})
    commitlogs.remove_orphans()
    assert commit_log.exists()
    delete_data(stack)
    assert not commit_log.exists()


def test_a_link_in_the_folder_is_deleted_and_not_what_it_points_to(tmp_path: Path) -> None:
    stack, elsewhere = make_stack(tmp_path / "local", "bench"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (stack.folder / "link").symlink_to(elsewhere)
    delete_data(stack)
    assert (elsewhere / "file").exists()
    assert not (stack.folder / "link").exists()
