"""Archive files of the audit log in a folder: `audit-<first>-<last>.jsonl.gz`, named by their positions in the chain.

A file gets its name only once all of it is on the disk and was read back. What a killed process left behind ends in
`.part` and is written again.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from moderation.domain.audit_archive import ArchivedRange, WrongArchive, read_archive

_NAME = re.compile(r"audit-(\d{12,})-(\d{12,})\.jsonl\.gz")
_LEVEL = 6


@dataclass(frozen=True, slots=True, order=True)
class ArchiveFile:
    """File with the positions that its name gives."""

    first: int
    last: int
    path: Path


def list_archives(folder: Path) -> list[ArchiveFile]:
    """Return the archives of a folder by position. Raises `StoreUnavailable`."""
    try:
        found = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError as error:
        raise _unavailable(folder, error) from error
    return sorted(ArchiveFile(int(match[1]), int(match[2]), path) for match, path in found if match)


def verify_archive(
    file: ArchiveFile, *, keys: Sequence[bytes], on_link: Callable[[int, bytes], None] = lambda _position, _hash: None
) -> ArchivedRange:
    """Read a whole file and verify it, also that it has the positions of its name. keys: one of them has signed it.

    Raises `WrongArchive`, `StoreUnavailable`.
    """
    found = _verify(file.path, keys, on_link)
    if (found.first, found.last) != (file.first, file.last):
        raise WrongArchive(f"it has the positions {found.first} to {found.last}")
    return found


def store_archive(folder: Path, lines: Iterable[bytes], *, key: bytes) -> ArchivedRange:
    """Write an archive, read it back and give it its name; return what it contains.

    An existing file is replaced by the same. Raises `WrongArchive` if what was read back is wrong, `StoreUnavailable`.
    """
    part = folder / f".audit-{os.getpid()}.part"
    try:
        with part.open("wb") as raw:
            # Without a time and a name, the same lines make the same file.
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0, filename="") as packed:
                packed.writelines(lines)
            raw.flush()
            os.fsync(raw.fileno())
        found = _verify(part, [key], lambda _position, _hash: None)
        name = f"audit-{found.first:012d}-{found.last:012d}.jsonl.gz"
        part.replace(folder / name)
        _sync_folder(folder)
    except OSError as error:
        raise _unavailable(folder, error) from error
    finally:
        part.unlink(missing_ok=True)
    return found


def make_durable(file: ArchiveFile) -> None:
    """Return once the file and its name are on disk: its writer may have been killed before.

    Raises `StoreUnavailable`.
    """
    try:
        with file.path.open("rb") as stored:
            os.fsync(stored.fileno())
        _sync_folder(file.path.parent)
    except OSError as error:
        raise _unavailable(file.path, error) from error


def delete_parts(folder: Path) -> None:
    """Delete what killed processes left behind. The caller is the only one that writes."""
    for part in folder.glob(".audit-*.part"):
        part.unlink(missing_ok=True)


def _verify(path: Path, keys: Sequence[bytes], on_link: Callable[[int, bytes], None]) -> ArchivedRange:
    try:
        with gzip.open(path, "rb") as lines:
            return read_archive(lines, keys=keys, on_link=on_link)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise WrongArchive("it is damaged or incomplete") from error
    except OSError as error:
        raise _unavailable(path, error) from error


def _sync_folder(folder: Path) -> None:
    """Store the new name on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unavailable(path: Path, error: OSError) -> StoreUnavailable:
    reason = error.strerror or str(error)
    return StoreUnavailable(_("%(path)s: %(reason)s", path=str(path), reason=reason))
