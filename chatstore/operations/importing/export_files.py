"""Find and read DiscordChatExporter files: single files, folders and zip archives.

Files are streamed; only one buffer and one message are in memory. A broken file yields everything before the
break, then `ExportRejected` reports its position. A message that cannot be read is yielded as `Unreadable`,
and reading continues.
"""

from __future__ import annotations

import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.conf import settings

from chatstore.domain.discord_export import ExportHeader, ExportRejected, parse_header
from chatstore.domain.json_stream import BrokenJson, JsonStream

MESSAGE_JSON_LIMIT = 16 * 1024 * 1024
"""Characters per message in the file. The exporter lists who reacted: ten thousand reactions are 5 MiB."""

MIN_CHECKED_UNPACKED_BYTES = 1024 * 1024
"""Files that unpack to less are never treated as zip bombs, whatever their ratio."""

MAX_OPEN_ARCHIVES = 16

MEDIA_FOLDER_SUFFIX = "_Files"
"""Suffix of the exporter's folders of downloaded media; they contain JSON files (stickers) too."""

_PART = re.compile(r" \[part (\d+)\]$")
_BROKEN = (BrokenJson, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class ExportFile:
    """File of messages; `member` is its name in the archive `path`, if it is in one."""

    path: Path
    member: str | None
    size: int

    @property
    def name(self) -> str:
        """Display name."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @property
    def order(self) -> tuple[str, int]:
        """Sort key that orders the parts "name.json", "name [part 2].json", …, "name [part 10].json"."""
        whole = self.member or str(self.path)
        stem, dot, suffix = whole.rpartition(".")
        part = _PART.search(stem if dot else whole)
        base = _PART.sub("", stem if dot else whole)
        return f"{base}.{suffix}", int(part.group(1)) if part else 1


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """File or message that was not imported, or not completely.

    kind: the same for all problems of one cause. message: its number in the file, from 1.
    byte: offset at which it begins.
    """

    file: str
    kind: str
    reason: str
    message: int | None = None
    byte: int | None = None


def find_exports(paths: Sequence[Path]) -> tuple[list[ExportFile], list[ImportProblem]]:
    """Return all files under the paths, with folders and archives expanded, and problems with unreadable ones."""
    search = _Search()
    for path in paths:
        if not search.scan_path(path):
            search.fail(path, "it contains no .json file and no .zip archive")
    return sorted(search.found.values(), key=lambda file: file.order), search.failed


class _Search:
    """Collects exports, each once; unreadable paths are recorded, and the search continues."""

    def __init__(self) -> None:
        self.found: dict[tuple[Path, str | None], ExportFile] = {}
        self.failed: list[ImportProblem] = []
        self._seen: set[Path] = set()
        self._unpacked = 0

    def fail(self, path: Path | str, reason: str) -> None:
        self.failed.append(ImportProblem(str(path), reason, reason))

    def scan_path(self, path: Path) -> bool:
        """Search a path; return whether it contained anything, readable or not."""
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                return self._scan_folder(path)
            if not stat.S_ISREG(mode):
                # A pipe could block forever, and each file is read twice.
                self.fail(path, "it is not a regular file")
            elif path.suffix.lower() == ".zip" or (path.suffix.lower() != ".json" and zipfile.is_zipfile(path)):
                return self._scan_archive(path)
            else:
                self._add(ExportFile(path, None, path.stat().st_size))
        except _BROKEN as error:
            self.fail(path, _describe_error(error))
        return True

    def _scan_folder(self, path: Path) -> bool:
        if self._was_seen(path):
            return True
        found = False
        for each in sorted(path.iterdir()):
            if each.suffix.lower() in {".json", ".zip"} or (
                each.is_dir() and not each.name.endswith(MEDIA_FOLDER_SUFFIX)
            ):
                found |= self.scan_path(each)
        return found

    def _scan_archive(self, path: Path) -> bool:
        if self._was_seen(path):
            return True
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if _is_export(info.filename)]
        # Members may share packed bytes, so their sum is compared with the size of the archive.
        if _is_bomb(path.stat().st_size, sum(info.file_size for info in members)):
            self.fail(path, f"it unpacks to more than {settings.IMPORT_ARCHIVE_RATIO} times its size")
            return True
        for info in members:
            file = ExportFile(path, info.filename, info.file_size)
            if _is_bomb(info.compress_size, info.file_size):
                self.fail(file.name, f"it unpacks to more than {settings.IMPORT_ARCHIVE_RATIO} times its size")
            elif self._unpacked + info.file_size > settings.IMPORT_ARCHIVE_BYTES:
                self.fail(file.name, f"the archives unpack to more than {settings.IMPORT_ARCHIVE_BYTES:,} bytes")
            else:
                self._unpacked += info.file_size
                self._add(file)
        return bool(members)

    def _was_seen(self, path: Path) -> bool:
        """Return whether a folder or archive was searched before: it is given twice, or a symlink leads back to it."""
        seen = path.resolve() in self._seen
        self._seen.add(path.resolve())
        return seen

    def _add(self, file: ExportFile) -> None:
        self.found[file.path.resolve(), file.member] = file


def _is_export(member: str) -> bool:
    *folders, name = member.split("/")
    return name.lower().endswith(".json") and not any(folder.endswith(MEDIA_FOLDER_SUFFIX) for folder in folders)


def _is_bomb(packed: int, unpacked: int) -> bool:
    return unpacked > MIN_CHECKED_UNPACKED_BYTES and unpacked > packed * settings.IMPORT_ARCHIVE_RATIO


# --- Reading --------------------------------------------------------------------------


def _ignore_bytes(count: int) -> None:
    """Ignore progress."""


class OpenArchives:
    """Cache of open zip archives; reopening one for each member would list all members every time."""

    def __init__(self) -> None:
        self._open: dict[Path, zipfile.ZipFile] = {}

    def get(self, path: Path) -> zipfile.ZipFile:
        """Return an archive; it stays open until `MAX_OPEN_ARCHIVES` others were requested, or until `close`."""
        archive = self._open.pop(path, None) or zipfile.ZipFile(path)
        self._open[path] = archive
        if len(self._open) > MAX_OPEN_ARCHIVES:
            self._open.pop(next(iter(self._open))).close()
        return archive

    def close(self) -> None:
        for archive in self._open.values():
            archive.close()
        self._open.clear()


@contextmanager
def _open_export(
    file: ExportFile, on_bytes: Callable[[int], None] = _ignore_bytes, *, archives: OpenArchives | None
) -> Iterator[JsonStream]:
    def stream(raw: IO[bytes]) -> JsonStream:
        def read(size: int) -> bytes:
            chunk = raw.read(size)
            on_bytes(len(chunk))
            return chunk

        return JsonStream(read, limit=MESSAGE_JSON_LIMIT)

    try:
        with ExitStack() as stack:
            if file.member is None:
                yield stream(stack.enter_context(file.path.open("rb", buffering=0)))
            else:
                archive = archives.get(file.path) if archives else stack.enter_context(zipfile.ZipFile(file.path))
                yield stream(stack.enter_context(archive.open(file.member)))
    except (RuntimeError, NotImplementedError) as error:
        # zipfile raises these for encrypted members and for unknown compression methods.
        raise ExportRejected(f"its archive cannot be opened: {error}", kind="its archive cannot be opened") from None


def read_header(
    file: ExportFile,
    *,
    given_id: int | None = None,
    derives_id: bool = False,
    archives: OpenArchives | None = None,
) -> ExportHeader:
    """Return the channel and guild of a file. Raises `ExportRejected` if it is not an export.

    The exporter writes them before the messages; a file that has them after the messages is read to its end.
    given_id, derives_id: for a channel without an id, as in `parse_header`. archives: archives already open.
    """
    found: dict[str, Any] = {}
    try:
        with _open_export(file, archives=archives) as stream:
            for key, value in _read_top(stream):
                found[key] = value
                if found.keys() >= {"channel", "messages"}:
                    break
    except _BROKEN as error:
        if "messages" not in found:
            raise ExportRejected(f"it is not an export: {_describe_error(error)}", kind="it is not an export") from None
    if "messages" not in found:
        raise ExportRejected("it is not an export: it has no list of messages")
    name = Path(file.member or file.path).name if derives_id else None
    return parse_header(found.get("guild"), found.get("channel"), given_id=given_id, derive_from=name)


def _read_top(stream: JsonStream) -> Iterator[tuple[str, Any]]:
    """Yield ("guild", object), ("channel", object), ("messages", None), in the order of the file."""
    if stream.peek() == "[":
        return
    for key in stream.members():
        if key == "messages" and stream.peek() == "[":
            yield key, None
            for _ in stream.items():
                pass
        elif key in {"guild", "channel"}:
            yield key, stream.value()
        else:
            stream.skip()


class ExportMessages:
    """Iterator over the values of a file's `messages`.

    number: number of the last yielded value, from 1. on_bytes: called with the number of bytes read. archives:
    archives already open.
    """

    def __init__(
        self, file: ExportFile, on_bytes: Callable[[int], None], *, archives: OpenArchives | None = None
    ) -> None:
        self.number = 0
        self._file = file
        self._on_bytes = on_bytes
        self._archives = archives
        self._stream: JsonStream | None = None

    @property
    def byte(self) -> int | None:
        """Offset of the last yielded value."""
        return self._stream.position if self._stream is not None and self.number else None

    def __iter__(self) -> Iterator[Any]:
        """Raise `ExportRejected` where the file breaks off, after yielding everything before."""
        try:
            with _open_export(self._file, self._on_bytes, archives=self._archives) as self._stream:
                for key in self._stream.members():
                    if key != "messages":
                        self._stream.skip()
                        continue
                    for raw in self._stream.items():
                        self.number += 1
                        yield raw
        except _BROKEN as error:
            reason = f"it is broken after {self.number:,} messages: {_describe_error(error)}"
            raise ExportRejected(reason, kind=f"it is broken: {_describe_error(error)}") from None


def _describe_error(error: Exception) -> str:
    """Return the first line of an error."""
    if isinstance(error, FileNotFoundError):
        return "the file does not exist"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
