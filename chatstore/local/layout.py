"""Folders and ports of a stack of local servers.

Pure values read from the environment, shared by the settings and the starter of the servers, so that a plain
`manage.py` finds the servers that `make run` started.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[2]

CASSANDRA_HOSTS = ("127.0.0.1", "127.0.0.2")
CASSANDRA_DATACENTER = "datacenter1"
# Roles of the local Postgres: only the starter uses the superuser, to create the others; the owner
# owns and alters the tables; the application reads and writes them.
POSTGRES_SUPERUSER = "chatstore"
POSTGRES_OWNER = "chatstore_owner"
POSTGRES_APPLICATION = "chatstore_app"
# Cassandra's default superuser, whose well-known password is replaced at once, and the application's role.
CASSANDRA_SUPERUSER = "cassandra"
CASSANDRA_APPLICATION = "chatstore"
JMX_USER = "chatstore"
# The suite's stacks: one set of servers with three databases, keyspaces and brokers, so that three tests can run at a
# time.
TEST_STACK_NAMES = ("test", "test2", "test3")
# The stack of the benchmarks, whose nodes compile their code as in production.
BENCH_STACK_NAME = "bench"
STACK_NAMES = ("run", *TEST_STACK_NAMES, BENCH_STACK_NAME)
# The set of servers of each stack.
_SERVERS = {"run": "run", **dict.fromkeys(TEST_STACK_NAMES, "test"), "bench": "bench"}

# The servers' well-known ports, roughly, plus a base for each set of servers. None is any server's default, and all are
# below 32768: from there on Linux assigns ports to outgoing connections, and a killed node could find its own port
# taken by one.
_PORT_SUFFIXES = {
    "web": 8000,
    "postgres": 5432,
    "valkey": 6379,
    "cassandra": 9042,
    "cassandra_storage": 7000,
    "cassandra_jmx": 7199,
    "cassandra_jmx_2": 7198,
}
_PORT_BASES = {"run": 20000, "test": 10000, "bench": 5000}


class WrongSetting(ValueError):
    """An environment variable has an invalid value; the text names it."""


@dataclass(frozen=True)
class Ports:
    """The ports of one stack. JMX always binds 127.0.0.1, hence one port per node."""

    web: int
    postgres: int
    valkey: int
    cassandra: int
    cassandra_storage: int
    cassandra_jmx: int
    cassandra_jmx_2: int


@dataclass(frozen=True)
class Stack:
    """Local servers, and the names of the stack's databases on them: `run` for people, `test`, `test2` and
    `test3` for the suite, which share their servers, `bench` for the benchmarks.
    """

    name: str
    ports: Ports
    root: Path

    @property
    def servers(self) -> str:
        """The name of the set of servers: `run`, `test` or `bench`."""
        return _SERVERS[self.name]

    @property
    def folder(self) -> Path:
        """The folder of everything that these servers store, logs and secrets included."""
        return self.root / self.servers

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def database(self) -> str:
        """The name of the Postgres database and of the Cassandra keyspace; all but those of `run` end in
        `_test`.
        """
        return f"chatstore{self.name.removeprefix('test')}_test" if self.for_tests else "chatstore"

    @property
    def valkey_database(self) -> int:
        """The number of the stack's database in Valkey."""
        return TEST_STACK_NAMES.index(self.name) if self.name in TEST_STACK_NAMES else 0

    @property
    def commitlog_sync_period_ms(self) -> int:
        """The interval at which nodes sync their commit log to disk (Cassandra's default is ten seconds).

        A purge waits that long before it deletes what it has quarantined, and so do the tests, hundreds of times.
        """
        return 200 if self.for_tests else 1_000

    @property
    def for_tests(self) -> bool:
        """Whether the suite and the benchmarks may write whatever they like there."""
        return self.name != "run"

    @property
    def is_short_lived(self) -> bool:
        """Whether its nodes run for minutes, so that optimizing their code costs more than it gains."""
        return self.servers == "test"


def name_port_setting(stack: str, server: str) -> str:
    """Return the environment variable of a port: CHATSTORE_WEB_PORT for `run`, CHATSTORE_TEST_WEB_PORT for `test`, so
    that one environment can configure all stacks.
    """
    infix = "" if stack == "run" else f"{stack.upper()}_"
    return f"CHATSTORE_{infix}{server.upper()}_PORT"


def read_port(environ: Mapping[str, str], *, stack: str, server: str) -> int:
    setting = name_port_setting(stack, server)
    text = environ.get(setting) or str(_PORT_BASES[stack] + _PORT_SUFFIXES[server])
    if not text.isascii() or not text.isdigit() or not 1024 <= int(text) <= 65535:
        raise WrongSetting(f"{setting} must be a port from 1024 to 65535, not {text!r}.")
    return int(text)


def read_stack(environ: Mapping[str, str], *, name: str | None = None) -> Stack:
    """Return the stack named by CHATSTORE_STACK (`run` by default), or `name`.

    All of its files are below the folder named by CHATSTORE_LOCAL, `.local` by default.

    Raises `WrongSetting`, with the variable's name, for an unknown stack or an invalid port.
    """
    chosen = name or environ.get("CHATSTORE_STACK") or "run"
    if chosen not in STACK_NAMES:
        raise WrongSetting(f"CHATSTORE_STACK must be one of {', '.join(STACK_NAMES)}, not {chosen!r}.")
    ports = {server: read_port(environ, stack=_SERVERS[chosen], server=server) for server in _PORT_SUFFIXES}
    root = Path(environ.get("CHATSTORE_LOCAL") or PROJECT_ROOT / ".local").absolute()
    return Stack(name=chosen, ports=Ports(**ports), root=root)
