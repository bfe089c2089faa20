"""Location of the commit logs of the suite's nodes; a folder replaces the tmpfs here."""

import shutil
from pathlib import Path

import pytest

from devstack import commitlogs
from devstack.commitlogs import choose_commitlog_folder

pytestmark = pytest.mark.unit


@pytest.fixture
def tmpfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(commitlogs, "measure_free_memory", lambda: 64 * 1024**3)
    monkeypatch.setattr(commitlogs, "WANTED_BYTES", 1)
    folder = tmp_path / "shm"
    folder.mkdir()
    return folder


@pytest.fixture
def node(tmp_path: Path) -> Path:
    folder = tmp_path / "cassandra-1"
    folder.mkdir()
    return folder


def choose(node: Path, tmpfs: Path) -> Path:
    return choose_commitlog_folder(node, in_memory=True, tmpfs=tmpfs)


def test_the_commit_log_is_in_memory_at_a_stable_path(node: Path, tmpfs: Path) -> None:
    chosen = choose(node, tmpfs)
    assert chosen.is_relative_to(tmpfs)
    assert choose(node, tmpfs) == chosen
    assert chosen.parent.stat().st_mode & 0o077 == 0


def test_an_old_commit_log_is_removed_for_fresh_data(node: Path, tmpfs: Path) -> None:
    old = choose(node, tmpfs)
    shutil.rmtree(node)
    node.mkdir()
    assert choose(node, tmpfs) != old
    assert not old.parent.exists()


def test_the_commit_log_of_another_node_is_not_touched(node: Path, tmpfs: Path) -> None:
    other = node.with_name("cassandra-2")
    other.mkdir()
    chosen = choose(other, tmpfs)
    assert choose(node, tmpfs) != chosen
    assert chosen.parent.exists()


def test_the_commit_log_of_a_run_is_beside_its_data(node: Path, tmpfs: Path) -> None:
    assert choose_commitlog_folder(node, in_memory=False, tmpfs=tmpfs) == node / "commitlog"


def test_the_commit_log_is_beside_the_data_where_memory_is_short(
    node: Path, tmpfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commitlogs, "measure_free_memory", lambda: 1)
    assert choose(node, tmpfs) == node / "commitlog"
    assert choose(node, tmpfs / "missing") == node / "commitlog"


def test_a_symlink_in_its_place_is_not_followed(node: Path, tmpfs: Path, tmp_path: Path) -> None:
    chosen = choose(node, tmpfs).parent
    shutil.rmtree(chosen)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    chosen.symlink_to(elsewhere)
    assert choose(node, tmpfs) == node / "commitlog"
    assert not any(elsewhere.iterdir())
