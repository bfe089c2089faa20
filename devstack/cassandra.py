"""Two local Cassandra nodes, from the jars that Maven downloads.

Two, because on a single node neither repair nor its statistics have any effect. They start together, both as seeds,
which takes half the time of starting one after the other. Both require passwords, for CQL and for JMX.
"""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chatstore.local.layout import (
    CASSANDRA_APPLICATION,
    CASSANDRA_DATACENTER,
    CASSANDRA_HOSTS,
    CASSANDRA_SUPERUSER,
    JMX_USER,
    PROJECT_ROOT,
    Stack,
)
from chatstore.local.secrets import make_private_folder, path_of_secret, read_or_make_secret, write_private
from devstack.checks import check_address, check_port, find_java, find_maven
from devstack.commitlogs import choose_commitlog_folder
from devstack.jvm import ACCESS_FLAGS, list_node_flags
from devstack.problems import Problem
from devstack.processes import Launch

NAMES = ("cassandra-1", "cassandra-2")
POM = Path(__file__).with_name("pom.xml")
# Shared by all stacks, which use the same 67 MB.
JARS = PROJECT_ROOT / ".local" / "cassandra-jars"
STAMP = "pom.sha256"
LOGINS = Path(__file__).with_name("logins.py")
# Marker in the folder of each node whose data contains the roles.
_ROLES_MADE = ".roles"
_NO_PASSWORDS = 3

_YAML = """\
cluster_name: {cluster}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
num_tokens: 4
auto_bootstrap: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{seeds}"
listen_address: {host}
rpc_address: {host}
authenticator: PasswordAuthenticator
# Each node has every role, so that a login does not depend on the other node.
auth_read_consistency_level: LOCAL_ONE
native_transport_port: {native_port}
storage_port: {storage_port}
ssl_storage_port: {storage_port}
commitlog_sync: periodic
commitlog_sync_period: {sync_ms}ms
commitlog_total_space: 512MiB
data_file_directories: ["{folder}/data"]
commitlog_directory: {commitlog}
hints_directory: {folder}/hints
saved_caches_directory: {folder}/saved_caches
cdc_raw_directory: {folder}/cdc_raw
# A development store needs no snapshots on DROP and TRUNCATE.
auto_snapshot: false
# Partitions are small here; list them all the same.
max_top_size_partition_count: 200
max_top_tombstone_partition_count: 200
min_tracked_partition_size: 0MiB
min_tracked_partition_tombstone_count: 0
"""

_LOGBACK = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{yyyy-MM-dd HH:mm:ss} %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""


def has_jars() -> bool:
    """Return whether the jars of this pom.xml are present."""
    stamp = JARS / STAMP
    return stamp.exists() and stamp.read_text() == _hash_pom()


def _hash_pom() -> str:
    return hashlib.sha256(POM.read_bytes()).hexdigest()


@contextmanager
def fetch_jars() -> Iterator[Callable[[], None]]:
    """Download Cassandra with Maven in the background; yield a function that waits for the result. Leaving the block
    early stops Maven.

    Raises Problem, and so does the function.
    """
    java = find_java(os.environ)
    maven = find_maven(os.environ)
    draft = JARS.with_name(f"{JARS.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
    child = subprocess.Popen(
        [*command, f"-DoutputDirectory={draft}", "-DincludeScope=runtime"],
        env=os.environ | {"JAVA_HOME": str(java)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def finish() -> None:
        output, _ = child.communicate()
        if child.returncode != 0:
            lines = output.strip().splitlines() or ["no output"]
            raise Problem(f"Maven could not download Cassandra: {lines[0]}")
        (draft / STAMP).write_text(_hash_pom())
        shutil.rmtree(JARS, ignore_errors=True)
        draft.replace(JARS)

    try:
        yield finish
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
        shutil.rmtree(draft, ignore_errors=True)


def check_node(stack: Stack, index: int) -> None:
    """Raise Problem if node 0 or 1 could not start: its address is missing, or a port is taken."""
    host = CASSANDRA_HOSTS[index]
    check_address(host)
    for port, server in (
        (stack.ports.cassandra, "cassandra"),
        (stack.ports.cassandra_storage, "cassandra_storage"),
    ):
        check_port(host, port, stack=stack.servers, server=server)
    jmx_server = ("cassandra_jmx", "cassandra_jmx_2")[index]
    check_port("127.0.0.1", choose_jmx_port(stack, index), stack=stack.servers, server=jmx_server)


def choose_jmx_port(stack: Stack, index: int) -> int:
    """Return the JMX port of a node. JMX always binds 127.0.0.1, so each node has its own."""
    return (stack.ports.cassandra_jmx, stack.ports.cassandra_jmx_2)[index]


def prepare_node(stack: Stack, index: int) -> Launch:
    """Write the configuration of node 0 or 1; return how to start it. Raises Problem."""
    host = CASSANDRA_HOSTS[index]
    check_node(stack, index)
    java = find_java(os.environ)
    folder = stack.folder / NAMES[index]
    make_private_folder(folder)
    passwords = write_jmx_passwords(stack)
    _write_configuration(stack, host=host, folder=folder)
    flags = list_node_flags(
        folder,
        jars=JARS,
        jmx_port=choose_jmx_port(stack, index),
        jmx_password_file=passwords,
        copies=len(CASSANDRA_HOSTS),
        # Nodes of tests and benchmarks store less, and run beside those of `make run`.
        heap_mb=512 if stack.for_tests else 768,
        optimized=not stack.is_short_lived,
    )
    command = [str(java / "bin" / "java"), *flags]
    command += ["-cp", f"{JARS}/*", "org.apache.cassandra.service.CassandraDaemon"]
    return Launch(NAMES[index], command, dict(os.environ), folder)


def _write_configuration(stack: Stack, *, host: str, folder: Path) -> None:
    text = _YAML.format(
        cluster=choose_cluster_name(stack),
        seeds=",".join(f"{seed}:{stack.ports.cassandra_storage}" for seed in CASSANDRA_HOSTS),
        host=host,
        native_port=stack.ports.cassandra,
        storage_port=stack.ports.cassandra_storage,
        sync_ms=stack.commitlog_sync_period_ms,
        folder=folder,
        commitlog=choose_commitlog_folder(folder, in_memory=stack.for_tests),
    )
    (folder / "cassandra.yaml").write_text(text)
    (folder / "logback.xml").write_text(_LOGBACK)


def choose_cluster_name(stack: Stack) -> str:
    """Return the name of these nodes' cluster, chosen once for their data, as Cassandra requires.

    It is random, since nodes remember their peers' addresses: after a change of ports, nodes of two checkouts on one
    machine would otherwise join into one cluster.
    """
    path = stack.folder / "cluster-name"
    if not path.exists():
        # Data from before this file existed carry the name without the random part.
        has_data = any((stack.folder / name / "data").exists() for name in NAMES)
        random_part = "" if has_data else f"_{secrets.token_hex(4)}"
        path.write_text(f"chatstore_{stack.servers}{random_part}", encoding="utf-8")
    return path.read_text(encoding="utf-8")


def write_jmx_passwords(stack: Stack) -> Path:
    """Write the JMX password file, lines of user and password, the format of a JVM and of nodetool's `-pwf`; return its
    path.
    """
    path = path_of_secret(stack, "jmxremote.password")
    line = f"{JMX_USER} {read_or_make_secret(stack, 'jmx_password')}\n"
    if not path.exists() or path.read_text() != line:
        write_private(path, line)
    return path


def ensure_roles(stack: Stack) -> None:
    """Create the application's role once for the data of these nodes, which must be up. Raises Problem.

    Nodes started by an older version do not ask for a password: the role is created at their next start.
    """
    marks = [stack.folder / name / _ROLES_MADE for name in NAMES]
    if all(mark.exists() for mark in marks):
        return
    request = {
        "hosts": CASSANDRA_HOSTS,
        "port": stack.ports.cassandra,
        "datacenter": CASSANDRA_DATACENTER,
        "superuser": CASSANDRA_SUPERUSER,
        "superuser_password": read_or_make_secret(stack, "cassandra_superuser_password"),
        "role": CASSANDRA_APPLICATION,
        "password": read_or_make_secret(stack, "cassandra_password"),
    }
    made = subprocess.run(
        [sys.executable, "-I", str(LOGINS)], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    if made.returncode == _NO_PASSWORDS:
        return
    if made.returncode != 0:
        lines = made.stderr.strip().splitlines() or [f"exit code {made.returncode}"]
        raise Problem(f"Could not create Cassandra's roles: {lines[-1]}.")
    for mark in marks:
        mark.touch()


def name_nodetool(stack: Stack, index: int, *arguments: str) -> list[str]:
    """Return the command line of Cassandra's nodetool for node 0 or 1; it takes a second. Raises Problem."""
    java = find_java(os.environ)
    # Most of a call is the start of the JVM: a single compiler and collector halve it.
    fast = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    command = [str(java / "bin" / "java"), "-Xmx64M", *fast, *ACCESS_FLAGS, "-cp", f"{JARS}/*"]
    # nodetool writes a history file to the home folder; keep it in the stack's folder.
    command += [f"-Dlogback.configurationFile={POM.with_name('nodetool-logback.xml')}"]
    command += [f"-Duser.home={stack.folder}", "org.apache.cassandra.tools.NodeTool"]
    command += ["-h", "127.0.0.1", "-p", str(choose_jmx_port(stack, index))]
    # In a file, since every user can read a command line.
    return [*command, "-u", JMX_USER, "-pwf", str(write_jmx_passwords(stack)), *arguments]
