"""The name of the local Cassandra cluster, by which the nodes of one checkout refuse those of another."""

from pathlib import Path

import pytest

from chatstore.local.layout import Stack, read_stack
from devstack.cassandra import NAMES, choose_cluster_name

pytestmark = pytest.mark.unit


def make_stack(root: Path) -> Stack:
    stack = read_stack({"CHATSTORE_LOCAL": str(root)}, name="test")
    stack.folder.mkdir(parents=True)
    return stack


def test_two_checkouts_have_clusters_of_different_names_and_keep_them(tmp_path: Path) -> None:
    stacks = [make_stack(tmp_path / "one"), make_stack(tmp_path / "two")]
    first, second = map(choose_cluster_name, stacks)
    assert first != second
    # Nodes whose data has another name do not start.
    for stack in stacks:
        (stack.folder / NAMES[0] / "data").mkdir(parents=True)
    assert [choose_cluster_name(stack) for stack in stacks] == [first, second]


def test_data_from_before_names_were_random_keeps_its_name(tmp_path: Path) -> None:
    stack = make_stack(tmp_path)
    (stack.folder / NAMES[1] / "data").mkdir(parents=True)
    assert choose_cluster_name(stack) == "chatstore_test"
