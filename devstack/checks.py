"""Prerequisites of a server's start: ports, memory, addresses, Java, Maven."""

import errno
import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from chatstore.local.layout import name_port_setting
from devstack.problems import Problem

# Two nodes use 2.5 GB; Postgres, Valkey, the web and a worker use the rest.
NEEDED_BYTES = 4 * 1024**3

JAVA_PACKAGE = "openjdk-17-jdk-headless"
MAVEN_PACKAGE = "maven"


def check_port(host: str, port: int, *, stack: str, server: str) -> None:
    """Raise Problem if another process listens there, or the address does not belong to this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise Problem(describe_missing_address(host)) from None
            setting = name_port_setting(stack, server)
            raise Problem(
                f"Port {port} on {host} ({server}) is taken. Stop the process that uses it, or set {setting} to a "
                f"free port."
            ) from None


def describe_missing_address(host: str) -> str:
    return (
        f"The address {host} is missing; the second Cassandra node listens there. "
        f"On macOS: sudo ifconfig lo0 alias {host} up"
    )


def check_address(host: str) -> None:
    """Raise Problem if the address does not belong to this machine (macOS has 127.0.0.1 only)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            raise Problem(describe_missing_address(host)) from None


def measure_free_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes available to new processes: the machine's, or less in a container with a limit."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text())
        stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
        # The kernel reclaims cached files when processes need memory.
        return min(free, limit - used + int(stat.get("inactive_file", "0")))
    except (OSError, ValueError):
        return free


def check_memory(free: int) -> None:
    if free < NEEDED_BYTES:
        raise Problem(f"Only {free / 1024**3:.1f} GiB of memory are free; two Cassandra nodes and the rest need 4 GiB.")


def check_disk(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise Problem(f"Only {free / 1024**3:.1f} GiB are free on the disk of {folder}; the servers need 4 GiB.")


def find_java(environ: Mapping[str, str], *, homes: Iterable[Path] = (Path("/usr/lib/jvm"),)) -> Path:
    """Return the home of a JDK 17: JAVA_HOME, the one on the PATH, then those below `homes`.

    Cassandra 5.0 runs on 11 and 17 only, and requires modules that a JRE lacks.
    """
    candidates = []
    if environ.get("JAVA_HOME"):
        candidates.append(Path(environ["JAVA_HOME"]))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        candidates.append(Path(on_path).resolve().parents[1])
    for home in homes:
        candidates.extend(sorted(home.glob("*17*")))
    for candidate in candidates:
        if is_jdk_17(candidate):
            return candidate
    raise Problem(
        "No JDK 17 found (Cassandra 5.0 does not support newer versions). "
        f"On Debian 12: apt-get install {JAVA_PACKAGE}; elsewhere set JAVA_HOME."
    )


def is_jdk_17(home: Path) -> bool:
    """Return whether the folder contains a JDK (not a JRE) of version 17."""
    if not (home / "bin" / "javac").exists():
        return False
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return 'version "17' in answer.stderr


def find_maven(environ: Mapping[str, str]) -> str:
    found = shutil.which("mvn", path=environ.get("PATH", os.defpath))
    if not found:
        raise Problem(f"Maven not found; it downloads Cassandra's jars. On Debian: apt-get install {MAVEN_PACKAGE}")
    return found
