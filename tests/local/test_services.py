import json
import os
import socket
import subprocess
import sys

from django.conf import settings

from chatstore.local.layout import PROJECT_ROOT
from chatstore.operations.services import describe_services


def call_services(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", "services", *arguments],
        cwd=PROJECT_ROOT,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_names_every_server_in_use() -> None:
    answer = call_services("--json")
    assert answer.returncode == 0
    services = json.loads(answer.stdout)
    assert services["ok"] is True
    assert services["web"] == {"url": settings.BASE_URL}
    cassandra = services["cassandra"]
    assert cassandra["version"].startswith("5.0")
    assert cassandra["keyspace"] == settings.CASSANDRA["keyspace"]
    assert cassandra["replication"] == settings.CASSANDRA["replication"]
    assert set(cassandra) == {
        *("ok", "local", "version", "hosts", "port", "keyspace", "datacenter", "replication", "nodes"),
        *("user", "password_file", "jmx_user", "jmx_password_file"),
    }
    assert all(set(node) == {"host", "up", "jmx_port"} and node["up"] for node in cassandra["nodes"])
    assert set(services["postgres"]) == {
        *("ok", "local", "version", "host", "port", "database", "user", "password_file")
    }
    assert set(services["redis"]) == {"ok", "local", "version", "host", "port", "user", "password_file"}


def test_local_nodes_have_a_jmx_port_each() -> None:
    ports = [node["jmx_port"] for node in describe_services()["cassandra"]["nodes"]]
    assert len(ports) == len(set(ports)) == 2


def test_an_unresponsive_server_gives_exit_code_1_and_no_password() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        unknown = probe.getsockname()[1]
    answer = call_services("--json", REDIS_URL=f"redis://:sesame@127.0.0.1:{unknown}/0")
    assert answer.returncode == 1
    assert "sesame" not in answer.stdout + answer.stderr
    assert settings.DATABASES["default"]["PASSWORD"] not in answer.stdout
    services = json.loads(answer.stdout)
    assert services["ok"] is False
    assert services["redis"]["ok"] is False
    assert services["redis"]["local"] is False
    assert services["redis"]["error"]
    assert services["postgres"]["ok"] is True


def test_the_text_output_has_a_line_per_server() -> None:
    answer = call_services()
    assert answer.returncode == 0
    assert [line.split()[0] for line in answer.stdout.splitlines()] == [
        *("web", "cassandra", "postgres", "redis", "node", "node")
    ]
