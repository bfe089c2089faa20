"""A zip archive that is sent while it is written: in constant memory, with the SHA-256 of each file."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator

FLUSH_BYTES = 1 << 16
"""Compressed bytes that are sent together."""


class ZipStream:
    """Zip archive whose bytes are yielded by `add` and `close`. hashes: of the files, by name, once they are added."""

    def __init__(self) -> None:
        self._sent = _Buffer()
        self._archive = zipfile.ZipFile(self._sent, "w", compression=zipfile.ZIP_DEFLATED)
        self._whole = hashlib.sha256()
        self.hashes: dict[str, str] = {}

    def add(self, name: str, pieces: Iterable[str]) -> Iterator[bytes]:
        """Add a file, as UTF-8; yield what can be sent meanwhile."""
        file_hash = hashlib.sha256()
        # Its size is not known before it ends.
        with self._archive.open(name, "w", force_zip64=True) as file:
            for piece in pieces:
                data = piece.encode()
                file_hash.update(data)
                file.write(data)
                if self._sent.size >= FLUSH_BYTES:
                    yield self._take()
        self.hashes[name] = file_hash.hexdigest()
        yield self._take()

    def close(self) -> Iterator[bytes]:
        """Yield the end of the archive."""
        self._archive.close()
        yield self._take()

    def hexdigest(self) -> str:
        """Return the SHA-256 of everything that was yielded."""
        return self._whole.hexdigest()

    def _take(self) -> bytes:
        data = self._sent.take()
        self._whole.update(data)
        return data


class _Buffer:
    """Bytes that the archive has written and that are not taken yet. It cannot seek, so the archive never goes back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes, /) -> int:
        self._parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts, self.size = [], 0
        return data
