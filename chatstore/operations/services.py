"""Servers in use, and whether each responds."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection

from chatstore.domain.errors import StoreUnavailable
from chatstore.store import cassandra, nodes
from chatstore.store.redis import redis_client

Service = dict[str, Any]


def describe_services() -> Service:
    """Return address, user, version and state of the web server, Cassandra, Postgres and Redis.

    Contains no passwords: `password_file` is the path of the file with the password of a local server; None for
    others. `ok` is true if a server responded, for Cassandra if all its nodes are up; otherwise `error` gives
    the reason.
    """
    services = {
        "cassandra": _probe(describe_cassandra(), _probe_cassandra),
        "postgres": _probe(describe_postgres(), _probe_postgres),
        "redis": _probe(describe_redis(), _probe_redis),
    }
    ok = all(service["ok"] for service in services.values())
    return {"ok": ok, "web": {"url": settings.BASE_URL}, **services}


def describe_cassandra() -> Service:
    """Return its settings; `nodes` and `version` are only known once it responds."""
    config = settings.CASSANDRA
    return {
        "ok": False,
        "local": settings.LOCAL_CASSANDRA,
        "version": None,
        "hosts": config["contact_points"],
        "port": config["port"],
        "user": config["user"] or None,
        "password_file": settings.PASSWORD_FILES["cassandra"],
        "jmx_user": settings.CASSANDRA_JMX_USER,
        "jmx_password_file": settings.PASSWORD_FILES["jmx"],
        "keyspace": config["keyspace"],
        "datacenter": config["datacenter"],
        "replication": config["replication"],
        "nodes": [{"host": host, "up": False, "jmx_port": _find_jmx_port(host)} for host in config["contact_points"]],
    }


def describe_postgres() -> Service:
    config = settings.DATABASES["default"]
    return {
        "ok": False,
        "local": settings.LOCAL_POSTGRES,
        "version": None,
        "host": config["HOST"],
        "port": int(config["PORT"] or 5432),
        "database": config["NAME"],
        "user": config["USER"] or None,
        "password_file": settings.PASSWORD_FILES["postgres"],
    }


def describe_redis() -> Service:
    parts = urlsplit(settings.REDIS_URL)
    return {
        "ok": False,
        "local": settings.LOCAL_REDIS,
        "version": None,
        "host": parts.hostname,
        "port": parts.port or 6379,
        "user": parts.username or "default",
        "password_file": settings.PASSWORD_FILES["redis"],
    }


def _probe(service: Service, read: Callable[[], Service]) -> Service:
    try:
        return service | {"ok": True} | read()
    except (StoreUnavailable, DatabaseError) as error:
        return service | {"error": str(error).strip().partition("\n")[0]}


def _probe_cassandra() -> Service:
    rows = cassandra.execute("SELECT release_version FROM system.local")
    found = [{"host": host, "up": up, "jmx_port": _find_jmx_port(host)} for host, up, _ in nodes.list_states()]
    return {"ok": all(node["up"] is not False for node in found), "version": rows[0][0], "nodes": found}


def _find_jmx_port(host: str) -> int:
    """Return the JMX port of a node. Local nodes share 127.0.0.1, so each has its own; others share one setting."""
    return int(settings.CASSANDRA_JMX_PORTS.get(host, settings.CASSANDRA_JMX_PORT))


def _probe_postgres() -> Service:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        row = cursor.fetchone()
    return {"version": row[0] if row else None}


def _probe_redis() -> Service:
    info = redis_client().info("server")
    return {"version": info.get("valkey_version") or info["redis_version"]}
