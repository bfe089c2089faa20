import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.checks import (
    check_address,
    check_disk,
    check_memory,
    check_port,
    find_java,
    find_maven,
    measure_free_memory,
)
from devstack.problems import Problem


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_a_taken_port_is_named_with_its_setting(taken_port: int) -> None:
    with pytest.raises(Problem) as raised:
        check_port("127.0.0.1", taken_port, stack="test", server="postgres")
    line = str(raised.value)
    assert "\n" not in line
    assert str(taken_port) in line
    assert "CHATSTORE_TEST_POSTGRES_PORT" in line


def test_a_free_port_passes(taken_port: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    check_port("127.0.0.1", free, stack="run", server="web")


def test_a_missing_local_address_is_reported() -> None:
    # 192.0.2.0/24 is reserved for documentation: no machine has it, as no Mac has 127.0.0.2.
    with pytest.raises(Problem, match=r"192\.0\.2\.1 is missing.*ifconfig lo0 alias"):
        check_address("192.0.2.1")


def test_the_second_node_has_its_address_here() -> None:
    check_address("127.0.0.2")


def test_too_little_memory_is_reported_in_gib() -> None:
    check_memory(4 * 1024**3)
    with pytest.raises(Problem, match=r"Only 3\.5 GiB of memory are free"):
        check_memory(int(3.5 * 1024**3))


def test_a_container_s_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("3000000000\n")
    (tmp_path / "memory.current").write_text("1500000000\n")
    (tmp_path / "memory.stat").write_text("anon 1000000000\ninactive_file 500000000\n")
    assert measure_free_memory(tmp_path) == 2_000_000_000


def test_without_a_limit_the_machine_s_memory_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    assert measure_free_memory(tmp_path) > 0


def test_this_disk_has_enough_space(tmp_path: Path) -> None:
    check_disk(tmp_path)


def make_jdk(home: Path, *, version: str, compiler: bool = True) -> Path:
    """Create a folder whose `java -version` answers like a real JDK."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    if compiler:
        (home / "bin" / "javac").touch()
    return home


def test_without_a_jdk_17_debian_s_package_is_named(tmp_path: Path) -> None:
    newer = make_jdk(tmp_path / "java-21", version="21.0.4")
    runtime_only = make_jdk(tmp_path / "homes" / "jre-17", version="17.0.15", compiler=False)
    with pytest.raises(Problem, match="apt-get install openjdk-17-jdk-headless"):
        find_java({"JAVA_HOME": str(newer), "PATH": ""}, homes=[runtime_only.parent])


def test_a_jdk_17_beside_a_newer_java_is_found(tmp_path: Path) -> None:
    newer = make_jdk(tmp_path / "java-21", version="21.0.4")
    wanted = make_jdk(tmp_path / "homes" / "java-17-openjdk", version="17.0.15")
    assert find_java({"PATH": str(newer / "bin")}, homes=[wanted.parent]) == wanted


def test_without_maven_debian_s_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="apt-get install maven"):
        find_maven({"PATH": str(tmp_path)})


def test_the_servers_own_java_and_maven_are_here() -> None:
    assert (find_java(os.environ) / "bin" / "java").exists()
    assert Path(find_maven(os.environ)).exists()
