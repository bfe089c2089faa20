"""Finding and reading DiscordChatExporter files: plain, in folders, in zip archives.

A file is streamed: what is held of it is one buffer and one message. A broken file gives
what stands before the break, then `ExportRejected` says where it broke.
"""

from __future__ import annotations

import io
import re
import resource
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import ijson

from chatstore.domain.discord_export import ExportHeader, ExportRejected, parse_header

BUFFER_BYTES = 64 * 1024
SLICE_BYTES = 512
"""What a suspicious buffer is handed on in, so that its cost shows before it is paid."""

SUSPICIOUS_BRACKETS = 8_000
"""Opening brackets in one buffer; an export has some 1,200. The parser keeps a path for each
level, so that brackets nested 60,000 deep would take gigabytes."""

GROWTH_LIMIT_BYTES = 150 * 1024 * 1024
"""A file that makes the process grow by more than this holds something no message is."""

MEDIA_FOLDER_SUFFIX = "_Files"
"""The exporter's folders of downloaded media; stickers among them are JSON files too."""

_PART = re.compile(r" \[part (\d+)\]$")
_BROKEN = (ijson.JSONError, zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeDecodeError)
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


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
class FailedFile:
    """A file that could not be imported, or not to its end, and why."""

    file: str
    reason: str


def find_exports(paths: Sequence[Path]) -> tuple[list[ExportFile], list[FailedFile]]:
    """Every file that the paths name, folders and archives opened; and what could not be."""
    found: dict[tuple[Path, str | None], ExportFile] = {}
    failed: list[FailedFile] = []
    for path in paths:
        try:
            files = list(_find_under(path))
        except _BROKEN as error:
            failed.append(FailedFile(str(path), _say(error)))
            continue
        if not files:
            failed.append(FailedFile(str(path), "it holds no .json file and no .zip archive"))
        found.update(((file.path.resolve(), file.member), file) for file in files)
    return sorted(found.values(), key=lambda file: file.order), failed


def _find_under(path: Path) -> Iterator[ExportFile]:
    if path.is_dir():
        for each in sorted(path.iterdir()):
            if each.is_dir():
                if not each.name.endswith(MEDIA_FOLDER_SUFFIX):
                    yield from _find_under(each)
            elif each.suffix.lower() in {".json", ".zip"}:
                yield from _find_under(each)
    elif path.suffix.lower() == ".zip" or (path.suffix.lower() != ".json" and zipfile.is_zipfile(path)):
        yield from _find_members(path)
    else:
        yield ExportFile(path, None, path.stat().st_size)


def _find_members(path: Path) -> Iterator[ExportFile]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            parts = info.filename.split("/")
            in_media = any(part.endswith(MEDIA_FOLDER_SUFFIX) for part in parts[:-1])
            if info.filename.lower().endswith(".json") and not in_media:
                yield ExportFile(path, info.filename, info.file_size)


# --- Reading --------------------------------------------------------------------------


class _Reader:
    """Hands a file to the parser: counts bytes, skips a byte order mark, watches memory."""

    def __init__(self, raw: IO[bytes], on_bytes: Callable[[int], None]) -> None:
        self._raw = raw
        self._on_bytes = on_bytes
        self._pending = io.BytesIO()
        self._at_start = True
        self._peak = _peak_bytes()

    def read(self, size: int = -1) -> bytes:
        """As a file's; `size` is the parser's buffer."""
        waiting = self._pending.read(SLICE_BYTES) if self._pending.getbuffer().nbytes else b""
        if waiting or size == 0:
            self._refuse_growth()
            return waiting
        chunk = self._raw.read(size)
        self._on_bytes(len(chunk))
        if self._at_start:
            self._at_start = False
            chunk = chunk.removeprefix(b"\xef\xbb\xbf") or (self._raw.read(size) if chunk else b"")
        self._refuse_growth()
        if chunk.count(b"[") + chunk.count(b"{") > SUSPICIOUS_BRACKETS:
            self._pending = io.BytesIO(chunk)
            return self._pending.read(SLICE_BYTES)
        return chunk

    def _refuse_growth(self) -> None:
        if _peak_bytes() - self._peak > GROWTH_LIMIT_BYTES:
            raise ExportRejected("one value in it takes more memory than any message could")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def _ignore_bytes(count: int) -> None:
    """For reads that are no progress."""


@contextmanager
def _open_export(file: ExportFile, on_bytes: Callable[[int], None] = _ignore_bytes) -> Iterator[_Reader]:
    try:
        if file.member is None:
            with file.path.open("rb", buffering=0) as raw:
                yield _Reader(raw, on_bytes)
        else:
            with zipfile.ZipFile(file.path) as archive, archive.open(file.member) as packed:
                yield _Reader(packed, on_bytes)
    except (RuntimeError, NotImplementedError) as error:
        # How zipfile says "encrypted" and "a compression that I don't know".
        raise ExportRejected(f"its archive can't be opened: {error}") from None


def read_header(file: ExportFile) -> ExportHeader:
    """The channel and guild of a file. Raises `ExportRejected` when it is no export.

    The exporter writes them before the messages; a file that has them behind is read through.
    """
    found: dict[str, Any] = {}
    has_messages = False
    try:
        with _open_export(file) as reader:
            for key, value in _read_top_keys(reader):
                if key == "messages":
                    has_messages = True
                else:
                    found[key] = value
                if has_messages and "channel" in found:
                    break
    except _BROKEN as error:
        if not has_messages:
            raise ExportRejected(f"it is no export: {_say(error)}") from None
    if not has_messages:
        raise ExportRejected("it is no export: it has no list of messages")
    return parse_header(found.get("guild"), found.get("channel"))


def _read_top_keys(reader: _Reader) -> Iterator[tuple[str, Any]]:
    """("guild", object), ("channel", object), ("messages", None), in the order of the file."""
    builder: ijson.ObjectBuilder | None = None
    for prefix, event, value in ijson.parse(reader, buf_size=BUFFER_BYTES):
        if prefix == "messages" and event == "start_array":
            yield "messages", None
        elif prefix in {"guild", "channel"}:
            if event == "start_map":
                builder = ijson.ObjectBuilder()
            if builder is not None:
                builder.event(event, value)
                if event == "end_map":
                    yield prefix, builder.value
                    builder = None
        elif builder is not None:
            builder.event(event, value)


def read_messages(file: ExportFile, on_bytes: Callable[[int], None]) -> Iterator[Any]:
    """The objects of the file's `messages`, one by one. `on_bytes` is told what was read.

    Raises `ExportRejected` where the file breaks off, after all that stands before.
    """
    count = 0
    try:
        with _open_export(file, on_bytes) as reader:
            for raw in ijson.items(reader, "messages.item", buf_size=BUFFER_BYTES):
                count += 1
                yield raw
    except _BROKEN as error:
        raise ExportRejected(f"it is broken after {count:,} messages: {_say(error)}") from None
    except ExportRejected as rejected:
        raise ExportRejected(f"after {count:,} messages: {rejected}") from None


def _say(error: Exception) -> str:
    """The first line of an error, without the parser's drawing of the place."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    text = error.args[0] if error.args else type(error).__name__
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    line = str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
    return "it ends too early" if "premature EOF" in line else line
