"""Commit logs of the suite's nodes in memory: the suite waits for them hundreds of times, and needs none of them later.

A folder in a tmpfs belongs to the data folder that names it by a random word, so that fresh data never meets an old
commit log. After a restart of the machine it is gone: what a killed node had not flushed is lost then, as nothing
else may be that the suite wrote.
"""

import os
import secrets
import shutil
from pathlib import Path

from devstack.checks import NEEDED_BYTES, measure_free_memory

TMPFS = Path("/dev/shm")  # noqa: S108  the folder made there is ours alone
# Two nodes' commit logs at their full length, and as much again for whatever else is in memory.
WANTED_BYTES = 2 * 1024**3
_PREFIX = "chatstore-commitlog-"


def choose_commitlog_folder(node: Path, *, in_memory: bool, tmpfs: Path = TMPFS) -> Path:
    """Return where the node with this data folder keeps its commit log: beside its data, unless it is wanted in
    memory and there is enough of that. Removes commit logs in memory whose data is gone."""
    if not in_memory or not _has_room(tmpfs):
        return node / "commitlog"
    _remove_orphans(tmpfs)
    word = node / ".commitlog"
    if not word.exists():
        word.write_text(secrets.token_hex(8))
    folder = tmpfs / f"{_PREFIX}{word.read_text()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return node / "commitlog"
    (folder / "node").write_text(str(node))
    return folder / "commitlog"


def _has_room(tmpfs: Path) -> bool:
    if not os.access(tmpfs, os.W_OK):
        return False
    return shutil.disk_usage(tmpfs).free >= WANTED_BYTES and measure_free_memory() >= NEEDED_BYTES + WANTED_BYTES


def _remove_orphans(tmpfs: Path) -> None:
    for folder in tmpfs.glob(f"{_PREFIX}*"):
        try:
            word = Path((folder / "node").read_text()) / ".commitlog"
            is_orphan = not word.exists() or f"{_PREFIX}{word.read_text()}" != folder.name
        except OSError:
            continue
        if is_orphan and not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
