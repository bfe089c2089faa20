"""Finding and reading DiscordChatExporter files: plain, in folders, in zip archives.

A file is streamed: what is held of it is one buffer and one message. A broken file gives
what stands before the break, then `ExportRejected` says where it broke. A message that cannot
be read is given as `Unreadable`, and those after it are read.
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
"""Characters of one message in the file. The exporter lists who gave a reaction: ten thousand of them are 5 MiB."""

RATIO_FROM_BYTES = 1024 * 1024
"""What unpacks to less is no bomb, however well it was packed."""

MAX_OPEN_ARCHIVES = 16

MEDIA_FOLDER_SUFFIX = "_Files"
"""The exporter's folders of downloaded media; stickers among them are JSON files too."""

_PART = re.compile(r" \[part (\d+)\]$")
_BROKEN = (BrokenJson, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file of messages; `member` is its name within the archive `path`, if it is one."""

    path: Path
    member: str | None
    size: int

    @property
    def name(self) -> str:
        """How it is named to people."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @property
    def order(self) -> tuple[str, int]:
        """Sorts the parts "name.json", "name [part 2].json", …, "name [part 10].json"."""
        whole = self.member or str(self.path)
        stem, dot, suffix = whole.rpartition(".")
        part = _PART.search(stem if dot else whole)
        base = _PART.sub("", stem if dot else whole)
        return f"{base}.{suffix}", int(part.group(1)) if part else 1


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """A file, or a message of it, that was not imported, or not to its end.

    kind: the same for all that have the same thing wrong. message: its number in the file, from 1.
    byte: where it begins.
    """

    file: str
    kind: str
    reason: str
    message: int | None = None
    byte: int | None = None


def find_exports(paths: Sequence[Path]) -> tuple[list[ExportFile], list[ImportProblem]]:
    """Return every file that the paths name, folders and archives opened; and what cannot be read."""
    search = _Search()
    for path in paths:
        if not search.look_into(path):
            search.fail(path, "it holds no .json file and no .zip archive")
    return sorted(search.found.values(), key=lambda file: file.order), search.failed


class _Search:
    """Finds exports, each once; what cannot be read is named, and the rest is found."""

    def __init__(self) -> None:
        self.found: dict[tuple[Path, str | None], ExportFile] = {}
        self.failed: list[ImportProblem] = []
        self._seen: set[Path] = set()
        self._unpacked = 0

    def fail(self, path: Path | str, reason: str) -> None:
        self.failed.append(ImportProblem(str(path), reason, reason))

    def look_into(self, path: Path) -> bool:
        """Find what a path names; return whether there was anything, good or bad."""
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                return self._look_into_folder(path)
            if not stat.S_ISREG(mode):
                # A pipe would be waited for without end, and each file is read twice.
                self.fail(path, "it is no regular file")
            elif path.suffix.lower() == ".zip" or (path.suffix.lower() != ".json" and zipfile.is_zipfile(path)):
                return self._look_into_archive(path)
            else:
                self._add(ExportFile(path, None, path.stat().st_size))
        except _BROKEN as error:
            self.fail(path, _say(error))
        return True

    def _look_into_folder(self, path: Path) -> bool:
        if self._was_seen(path):
            return True
        found = False
        for each in sorted(path.iterdir()):
            if each.suffix.lower() in {".json", ".zip"} or (
                each.is_dir() and not each.name.endswith(MEDIA_FOLDER_SUFFIX)
            ):
                found |= self.look_into(each)
        return found

    def _look_into_archive(self, path: Path) -> bool:
        if self._was_seen(path):
            return True
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if _is_export(info.filename)]
        # Members may share their packed bytes: together they are held against the whole archive.
        if _is_bomb(path.stat().st_size, sum(info.file_size for info in members)):
            self.fail(path, f"it unpacks to over {settings.IMPORT_ARCHIVE_RATIO} times its size")
            return True
        for info in members:
            file = ExportFile(path, info.filename, info.file_size)
            if _is_bomb(info.compress_size, info.file_size):
                self.fail(file.name, f"it unpacks to over {settings.IMPORT_ARCHIVE_RATIO} times its size")
            elif self._unpacked + info.file_size > settings.IMPORT_ARCHIVE_BYTES:
                self.fail(file.name, f"the archives unpack to over {settings.IMPORT_ARCHIVE_BYTES:,} bytes")
            else:
                self._unpacked += info.file_size
                self._add(file)
        return bool(members)

    def _was_seen(self, path: Path) -> bool:
        """Whether a folder or archive was looked into before: it is named twice, or a link leads back."""
        seen = path.resolve() in self._seen
        self._seen.add(path.resolve())
        return seen

    def _add(self, file: ExportFile) -> None:
        self.found[file.path.resolve(), file.member] = file


def _is_export(member: str) -> bool:
    *folders, name = member.split("/")
    return name.lower().endswith(".json") and not any(folder.endswith(MEDIA_FOLDER_SUFFIX) for folder in folders)


def _is_bomb(packed: int, unpacked: int) -> bool:
    return unpacked > RATIO_FROM_BYTES and unpacked > packed * settings.IMPORT_ARCHIVE_RATIO


# --- Reading --------------------------------------------------------------------------


def _ignore_bytes(count: int) -> None:
    """For reads that are no progress."""


class OpenArchives:
    """Zip archives that stay open between their members' reads, or each read would list all members first."""

    def __init__(self) -> None:
        self._open: dict[Path, zipfile.ZipFile] = {}

    def get(self, path: Path) -> zipfile.ZipFile:
        """Return an archive; it stays open until others have been asked for, or `close`."""
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
        # How zipfile says "encrypted" and "a compression that I don't know".
        raise ExportRejected(f"its archive can't be opened: {error}", kind="its archive can't be opened") from None


def read_header(
    file: ExportFile,
    *,
    given_id: int | None = None,
    derives_id: bool = False,
    archives: OpenArchives | None = None,
) -> ExportHeader:
    """The channel and guild of a file. Raises `ExportRejected` when it is no export.

    The exporter writes them before the messages; a file that has them behind is read through.
    given_id, derives_id: for a channel without an id, as in `parse_header`. archives: those that are open.
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
            raise ExportRejected(f"it is no export: {_say(error)}", kind="it is no export") from None
    if "messages" not in found:
        raise ExportRejected("it is no export: it has no list of messages")
    name = Path(file.member or file.path).name if derives_id else None
    return parse_header(found.get("guild"), found.get("channel"), given_id=given_id, derive_from=name)


def _read_top(stream: JsonStream) -> Iterator[tuple[str, Any]]:
    """("guild", object), ("channel", object), ("messages", None), in the order of the file."""
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
    """The values of a file's `messages`, one by one.

    number: of the value that was given last, from 1. `on_bytes` is told what was read. archives: those
    that are open.
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
        """Where the value that was given last begins."""
        return self._stream.position if self._stream is not None and self.number else None

    def __iter__(self) -> Iterator[Any]:
        """Raise `ExportRejected` where the file breaks off, after all that stands before."""
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
            reason = f"it is broken after {self.number:,} messages: {_say(error)}"
            raise ExportRejected(reason, kind=f"it is broken: {_say(error)}") from None


def _say(error: Exception) -> str:
    """The first line of an error."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
