"""Rights on the local servers: the application is no superuser, and every server requires a password."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from cassandra import AuthenticationFailed
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from django.conf import settings
from django.db import ProgrammingError, connection

from chatstore.local.layout import read_stack
from chatstore.operations.services import describe_services
from chatstore.store import cassandra
from devstack.cassandra import NAMES, name_nodetool, write_jmx_passwords
from tests.processes import call_nodetool

STACK = read_stack(os.environ)


def query(sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY moderation_auditentry FROM PROGRAM 'true'",
        "COPY (SELECT 1) TO '/tmp/chatstore'",
        "SELECT pg_read_file('/etc/passwd')",
        "SET ROLE chatstore",
        "SET ROLE chatstore_owner",
        "ALTER ROLE chatstore_app SUPERUSER",
        "CREATE ROLE another",
        "CREATE TABLE another (id int)",
        "ALTER TABLE moderation_auditentry ADD COLUMN another int",
        "DROP TABLE moderation_auditentry",
        "TRUNCATE moderation_auditentry",
        "UPDATE moderation_auditentry SET action = action WHERE false",
        "DELETE FROM moderation_auditentry WHERE false",
        "INSERT INTO moderation_auditentry (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 2",
        "SELECT 1 FROM moderation_auditentry LIMIT 1 FOR UPDATE",
        "ALTER TABLE moderation_auditentry DISABLE TRIGGER audit_is_append_only",
        "DROP TRIGGER audit_is_append_only ON moderation_auditentry",
    ],
)
def test_the_applications_role_in_postgres_is_refused(sql: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner|must be superuser|Only roles with"):
        query(sql)


def test_it_owns_nothing_and_no_table_belongs_to_the_superuser() -> None:
    assert query("SELECT current_user, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user") == [
        ("chatstore_app", False, False)
    ]
    owners = query("SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    assert owners == [("chatstore_owner",)]


@pytest.mark.parametrize(
    ("user", "password"), [("cassandra", "cassandra"), ("chatstore", "cassandra"), ("", ""), ("chatstore", "")]
)
def test_cassandra_requires_a_password(user: str, password: str) -> None:
    config = settings.CASSANDRA
    auth = PlainTextAuthProvider(user, password) if user else None
    cluster = Cluster(config["contact_points"], port=config["port"], protocol_version=5, auth_provider=auth)
    try:
        with pytest.raises(NoHostAvailable) as refused:
            cluster.connect()
    finally:
        cluster.shutdown()
    assert any(isinstance(cause, AuthenticationFailed) for cause in refused.value.errors.values())


def test_the_applications_role_in_cassandra_is_no_superuser_and_each_node_knows_it() -> None:
    rows = cassandra.execute("SELECT role, is_superuser, can_login FROM system_auth.roles", consistency=cassandra.ALL)
    assert sorted(rows) == [("cassandra", True, True), ("chatstore", False, True)]
    cql = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'system_auth'"
    assert cassandra.execute(cql)[0][0]["replication_factor"] == "2"


def test_jmx_requires_a_password(tmp_path: Path) -> None:
    known = name_nodetool(STACK, 0, "info")
    at = known.index("-pwf")
    wrong = tmp_path / "passwords"
    wrong.write_text("chatstore wrong\n")
    for command in ([*known[: at - 2], *known[at + 2 :]], [*known[: at + 1], str(wrong), "info"]):
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode != 0
        assert re.search("Credentials required|Invalid username or password", refused.stderr)
    assert "Uptime" in call_nodetool(STACK, 0, "info").stdout
    assert write_jmx_passwords(STACK).read_text().split()[1] not in " ".join(known)


def test_data_files_are_not_readable_by_other_accounts() -> None:
    for name in ("postgres", "postgres/data", "valkey", *NAMES, "logs", "secrets"):
        folder = STACK.folder / name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, name
    for file in (STACK.folder / "secrets").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_the_output_of_services_gives_other_tools_user_and_password() -> None:
    services = describe_services()
    postgres, nodes, redis = services["postgres"], services["cassandra"], services["redis"]
    assert (postgres["user"], nodes["user"], redis["user"]) == ("chatstore_app", "chatstore", "default")
    assert Path(postgres["password_file"]).read_text() == settings.DATABASES["default"]["PASSWORD"]
    assert Path(nodes["password_file"]).read_text() == settings.CASSANDRA["password"]
    assert Path(redis["password_file"]).read_text() in settings.REDIS_URL
    assert Path(nodes["jmx_password_file"]).read_text().split()[0] == nodes["jmx_user"]
