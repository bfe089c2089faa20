"""Commit logs in memory, for the nodes of the suite and the benchmarks: the suite waits for commit log syncs hundreds
of times, and neither needs the logs later.

A folder in a tmpfs belongs to the data folder that names it by a random token, so that fresh data is never combined
with an old commit log. It does not survive a restart of the machine: what a killed node had not flushed is lost then,
which only affects data of tests.
"""

import os
import secrets
import shutil
from pathlib import Path

from devstack.checks import NEEDED_BYTES, measure_free_memory

TMPFS = Path("/dev/shm")  # noqa: S108 - the folder created there is private
# Two nodes' commit logs at full size, and as much again for everything else in memory.
WANTED_BYTES = 2 * 1024**3
_PREFIX = "chatstore-commitlog-"


def choose_commitlog_folder(node: Path, *, in_memory: bool, tmpfs: Path = TMPFS) -> Path:
    """Return the commit log folder of the node with this data folder: beside its data, unless a folder in memory is
    requested and enough memory is free. Deletes commit logs in memory whose data is gone.
    """
    if not in_memory:
        return node / "commitlog"
    remove_orphans(tmpfs=tmpfs)
    if not _has_space(tmpfs):
        return node / "commitlog"
    token = node / ".commitlog"
    if not token.exists():
        token.write_text(secrets.token_hex(8))
    folder = tmpfs / f"{_PREFIX}{token.read_text()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return node / "commitlog"
    (folder / "node").write_text(str(node))
    return folder / "commitlog"


def _has_space(tmpfs: Path) -> bool:
    if not os.access(tmpfs, os.W_OK):
        return False
    return shutil.disk_usage(tmpfs).free >= WANTED_BYTES and measure_free_memory() >= NEEDED_BYTES + WANTED_BYTES


def remove_orphans(*, tmpfs: Path = TMPFS) -> None:
    """Delete the commit logs in memory whose data is gone: they use memory that a start needs."""
    for folder in tmpfs.glob(f"{_PREFIX}*"):
        try:
            token = Path((folder / "node").read_text()) / ".commitlog"
            is_orphan = not token.exists() or f"{_PREFIX}{token.read_text()}" != folder.name
        except OSError:
            continue
        if is_orphan and not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
