"""Archive files of the audit log: consecutive links of the hash chain with their entries, as lines of JSON, signed.

Format 1, one JSON object a line, in ASCII with sorted keys and without spaces:

1. The header: `format` ("chatstore audit archive"), `version` (1), `first` (the first position) and `previous` (the
   hash before it).
2. A line for each link: `position`, `version` (of the link), `hash`, `linked_at`, `entry` (its canonical form, see
   `moderation/domain/audit_chain.py`) and, if it has packed message ids, `packed` (these, in base64).
3. The trailer: `last` (the last position), `entries`, `hash` (of the last link), `key` (which key signed it) and
   `signature`: the HMAC-SHA256 over all lines before it, with their ends, and the trailer without `signature`.

Keys are rotated: a file is verified with the one among several keys that its trailer names. The same links and key make
the same bytes. A file that was cut off has no trailer.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moderation.domain.audit_chain import EntryContent, as_canonical, from_canonical, link_hash

FORMAT, VERSION = "chatstore audit archive", 1


class WrongArchive(ValueError):
    """The file is not a whole archive, was changed, or was signed with a key that is not known."""


@dataclass(frozen=True, slots=True)
class ArchivedLink:
    """Link of the chain with its entry. packed: the entry's packed ids, if it has any."""

    position: int
    version: int
    hash: bytes
    linked_at: dt.datetime
    entry: EntryContent
    packed: bytes | None


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """Verified content of an archive: positions from `first` to `last`, the hash before them and the last one.

    key: name of the key that signed it.
    """

    first: int
    last: int
    previous: bytes
    hash: bytes
    key: str


def write_archive(links: Iterable[ArchivedLink], *, previous: bytes, key: bytes) -> Iterator[bytes]:
    """Yield the lines of an archive. links: at least one, consecutive. previous: the hash before the first one."""
    signature = hmac.new(key, digestmod=hashlib.sha256)
    newest: ArchivedLink | None = None
    count = 0
    for newest in links:
        if not count:
            header = {"format": FORMAT, "version": VERSION, "first": newest.position, "previous": previous.hex()}
            yield _signed(header, signature)
        yield _signed(_describe(newest), signature)
        count += 1
    if newest is None:
        raise ValueError("an archive has at least one entry")
    trailer = {"last": newest.position, "entries": count, "hash": newest.hash.hex(), "key": name_of_key(key)}
    signature.update(_as_line(trailer))
    yield _as_line({**trailer, "signature": signature.hexdigest()})


def read_archive(
    lines: Iterable[bytes],
    *,
    keys: Iterable[bytes],
    on_link: Callable[[int, bytes], None] = lambda _position, _hash: None,
) -> ArchivedRange:
    """Verify an archive and return what it contains. on_link: called with each position and its hash.

    keys: those that may have signed it.

    Checks the signature, and computes the hash of every link. Raises `WrongArchive`.
    """
    try:
        return _read(iter(lines), keys, on_link)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, WrongArchive):
            raise
        raise WrongArchive("it has a line that is not of this format") from error


def name_of_key(key: bytes) -> str:
    """Return a name of a key, from which it cannot be computed: 16 hexadecimal digits."""
    return hmac.new(key, b"chatstore audit archive key", hashlib.sha256).hexdigest()[:16]


def _read(lines: Iterator[bytes], keys: Iterable[bytes], on_link: Callable[[int, bytes], None]) -> ArchivedRange:
    # Only the last line names the key.
    signatures = {name_of_key(key): hmac.new(key, digestmod=hashlib.sha256) for key in keys}
    line = next(lines, b"")
    header = json.loads(line or b"{}")
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise WrongArchive("it is not an archive of the audit log, or of another version")
    _update(signatures, line)
    first = position = int(header["first"])
    before = previous = bytes.fromhex(header["previous"])
    for line in lines:
        value = json.loads(line)
        if "entry" not in value:
            _check_trailer(value, signatures, entries=position - first, last=position - 1, last_hash=previous)
            if next(lines, None) is not None:
                raise WrongArchive("something follows its signature")
            return ArchivedRange(first, position - 1, before, previous, value["key"])
        _update(signatures, line)
        previous = _check_link(value, position, previous)
        on_link(position, previous)
        position += 1
    raise WrongArchive("it is incomplete: it has no signature")


def _update(signatures: Mapping[str, hmac.HMAC], line: bytes) -> None:
    for signature in signatures.values():
        signature.update(line)


def _check_link(value: Mapping[str, Any], position: int, previous: bytes) -> bytes:
    """Return the hash of a link. Raises `WrongArchive`."""
    entry = from_canonical(value["entry"])
    packed = base64.b64decode(value["packed"], validate=True) if "packed" in value else None
    if (None if packed is None else hashlib.sha256(packed).digest()) != entry.ids_hash:
        raise WrongArchive(f"the message ids of entry {entry.id} were changed")
    computed = link_hash(entry, position=position, previous=previous, version=int(value["version"]))
    if value["position"] != position or value["hash"] != computed.hex():
        raise WrongArchive(f"entry {entry.id} (position {position}) was changed, is missing or was inserted")
    return computed


def _check_trailer(
    trailer: Mapping[str, Any], signatures: Mapping[str, hmac.HMAC], *, entries: int, last: int, last_hash: bytes
) -> None:
    signed = {name: value for name, value in trailer.items() if name != "signature"}
    signature = signatures.get(signed["key"])
    if signature is None:
        raise WrongArchive(f"it was signed with another key, {signed['key']}; known are {', '.join(signatures)}")
    signature.update(_as_line(signed))
    if not hmac.compare_digest(signature.hexdigest(), str(trailer["signature"])):
        raise WrongArchive("its signature is wrong")
    if (signed["entries"], signed["last"], signed["hash"]) != (entries, last, last_hash.hex()) or not entries:
        raise WrongArchive("its last line does not match its content")


def _describe(link: ArchivedLink) -> dict[str, Any]:
    described = {
        "position": link.position,
        "version": link.version,
        "hash": link.hash.hex(),
        "linked_at": link.linked_at.astimezone(dt.UTC).isoformat(timespec="microseconds"),
        "entry": as_canonical(link.entry),
    }
    return described if link.packed is None else {**described, "packed": base64.b64encode(link.packed).decode("ascii")}


def _signed(value: Mapping[str, Any], signature: hmac.HMAC) -> bytes:
    line = _as_line(value)
    signature.update(line)
    return line


def _as_line(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"{text}\n".encode("ascii")
