"""Audit the locked dependencies: `python -m devstack.dependency_audit`; `make check` runs it. Uses no network.

1. The lock: each package has one exact version and SHA-256 hashes; no file is named by a URL or a path.
2. The environment: exactly the locked versions are installed, and each installed file is as its package recorded it.
3. Advisories, from a copy of the Python advisory database (OSV records as YAML or JSON) that `ADVISORIES` names.
   Without one it prints that they were not checked: none is pinned here, since data of yesterday promises too much.

Prints one line per problem and exits with 1 if there is any.
"""

import base64
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackagePath, distributions
from pathlib import Path
from typing import Any

import yaml
from packaging.markers import Marker
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from devstack.environment import LOCK, UV_LOCK

PINNED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[\w,-]+\])?==(?P<version>[^\s;]+)(?:\s*;\s*(?P<marker>.+))?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")

UNRECORDED = re.compile(r"\.pyc$|/RECORD$|^RECORD$|/(?:INSTALLER|REQUESTED|direct_url\.json)$")
"""Files that an installer writes, or that Python does."""


def main() -> int:
    """Print the problems; return the exit code."""
    locked, problems = read_lock(LOCK)
    _tools, problems_of_tools = read_lock(UV_LOCK)
    problems += problems_of_tools
    problems += check_installed(locked, list(distributions()))
    database = os.environ.get("ADVISORIES", "")
    if database:
        problems += check_advisories({**locked, **_tools}, Path(database))
    for problem in problems:
        print(f"dependencies: {problem}", file=sys.stderr)
    checked = f"compared with {database}" if database else "not checked (ADVISORIES names no copy of the database)"
    print(f"dependencies: {len(locked)} locked packages, {len(problems)} problems; advisories {checked}")
    return 1 if problems else 0


def read_lock(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the version of each locked package that this Python needs, and the problems of the file."""
    locked: dict[str, str] = {}
    problems = []
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        requirement, *hashes = re.split(r"\s+(?=--hash=)", line.split(" #")[0].strip())
        if not requirement or requirement.startswith("#"):
            continue
        pinned = PINNED.fullmatch(requirement)
        if pinned is None:
            problems.append(f"{path.name}: not an exact version: {requirement}")
        elif not hashes or not all(HASH.fullmatch(one.strip()) for one in hashes):
            problems.append(f"{path.name}: {pinned['name']} has no SHA-256 hashes")
        elif pinned["marker"] is None or Marker(pinned["marker"]).evaluate():
            locked[canonicalize_name(pinned["name"])] = pinned["version"]
    return locked, problems


def check_installed(locked: Mapping[str, str], installed: Sequence[Distribution]) -> Iterator[str]:
    """Yield what differs between the lock and the installed packages, and between these and their own records."""
    found: dict[str, Distribution] = {canonicalize_name(one.metadata["Name"]): one for one in installed}
    for name in sorted({*locked, *found} - {"pip", "setuptools"}):
        if name not in found:
            yield f"{name} {locked[name]} is locked, but not installed"
        elif name not in locked:
            yield f"{name} {found[name].version} is installed, but not locked"
        elif Version(found[name].version) != Version(locked[name]):
            yield f"{name} {found[name].version} is installed, but {locked[name]} is locked"
        else:
            yield from (f"{name}: {file} was changed" for file in found[name].files or () if is_changed(file))


def is_changed(file: PackagePath) -> bool:
    """Return whether an installed file is gone, or is not the one that its package recorded."""
    if file.hash is None or UNRECORDED.search(str(file)):
        return False
    try:
        content = Path(str(file.locate())).read_bytes()
    except OSError:
        return True
    digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).rstrip(b"=").decode()
    return digest != file.hash.value


def check_advisories(locked: Mapping[str, str], database: Path) -> Iterator[str]:
    """Yield the advisories about locked versions. A database without any record is a problem too."""
    records = 0
    for path in sorted(database.rglob("*")):
        if path.suffix not in (".yaml", ".json") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        record = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        if not isinstance(record, dict) or "affected" not in record:
            continue
        records += 1
        if "withdrawn" not in record:
            yield from concerns(record, locked)
    if not records:
        yield f"{database} has no advisories"


def concerns(record: Mapping[str, Any], locked: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each locked package that an advisory affects."""
    for affected in record["affected"]:
        package = affected.get("package", {})
        version = locked.get(canonicalize_name(package.get("name", "")))
        if version is not None and package.get("ecosystem") == "PyPI" and is_affected(version, affected):
            summary = " ".join(str(record.get("summary") or record.get("details", "")).split())[:120]
            yield f"{package['name']} {version}: {record['id']} {summary}"


def is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    """Return whether a version is listed, or lies in a range."""
    if version in affected.get("versions", ()):
        return True
    ranges = (one["events"] for one in affected.get("ranges", ()) if one.get("type") == "ECOSYSTEM")
    return any(lies_between(Version(version), events) for events in ranges)


def lies_between(version: Version, events: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a version lies in one of the ranges that the events describe, in their order."""
    is_inside = False
    for event in sorted(events, key=lambda event: parse(next(iter(event.values())))):
        ((kind, at),) = event.items()
        if kind == "introduced" and version >= parse(at):
            is_inside = True
        if (kind == "fixed" and version >= parse(at)) or (kind == "last_affected" and version > parse(at)):
            is_inside = False
    return is_inside


def parse(text: str) -> Version:
    """Return a version; one that is not valid comes first, which affects too much rather than too little."""
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")


if __name__ == "__main__":
    sys.exit(main())
