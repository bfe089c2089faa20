"""Refusals of a wrong environment at project start."""

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from chatstore.local.layout import PROJECT_ROOT, STACK_NAMES, read_stack

pytestmark = pytest.mark.unit

EXTERNAL = {
    "BASE_URL": "https://chat.example",
    "SECRET_KEY": "x" * 60,
    "DATABASE_URL": "postgres://chatstore:sesame@db.example:5433/chatstore?sslmode=require",
    "REDIS_URL": "rediss://:sesame@redis.example:6380/0",
    "CASSANDRA_CONTACT_POINTS": "10.0.0.1, 10.0.0.2",
    "CASSANDRA_DATACENTER": "dc1",
}


def read_settings(expression: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Print an expression over the settings `s` in a process with only that environment."""
    return subprocess.run(
        [sys.executable, "-c", f"import chatstore.settings as s; print({expression})"],
        cwd=PROJECT_ROOT,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHATSTORE_STACK", "production"),
        ("CHATSTORE_POSTGRES_PORT", "80"),
        ("CHATSTORE_WEB_PORT", "eight"),
        ("DATABASE_URL", "mysql://db.example/chatstore"),
        ("REDIS_URL", "localhost:6379"),
        ("REDIS_URL", "redis://redis.example:port/0"),
        ("CASSANDRA_PORT", "0"),
        ("CASSANDRA_KEYSPACE", "chat-store"),
        ("CASSANDRA_REPLICATION", "datacenter1"),
        ("CASSANDRA_REPLICATION", "elsewhere:3"),
        ("CASSANDRA_USER", "without-password"),
        ("CASSANDRA_TLS_CA", "/nowhere/ca.pem"),
        ("CASSANDRA_TLS_CERT", "/nowhere/cert.pem"),
        ("DEBUG", "maybe"),
        ("BASE_URL", "chat.example"),
        ("BASE_URL", "http://chat.example"),
        ("CLOCK_SKEW_SECONDS", "1"),
        ("PURGE_LEASE_RENEW_SECONDS", "20"),
        ("PAGE_DEADLINE_SECONDS", "0"),
        ("SECRET_KEY_FILE", "/nowhere/key"),
        ("AUDIT_RETENTION_DAYS", "365"),
        ("OIDC_ISSUER", "https://id.example"),
        ("OIDC_ISSUER", "http://id.example"),
        ("OIDC_ISSUER", "id.example"),
        ("OIDC_ROLES", "chat-mods"),
        ("OIDC_ROLES", "chat-mods=captain"),
        ("OIDC_ROLES", "chat-mods=operator@7"),
        ("OIDC_ALGORITHM", "none"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(name: str, value: str) -> None:
    answer = read_settings("1", **{name: value})
    assert answer.returncode == 1
    last = answer.stderr.splitlines()[-1]
    assert "ImproperlyConfigured" in last
    assert name.removesuffix("_FILE") in last


@pytest.mark.parametrize("missing", ["SECRET_KEY", "CASSANDRA_DATACENTER"])
def test_external_servers_need_explicit_settings(missing: str) -> None:
    environ = {name: value for name, value in EXTERNAL.items() if name != missing}
    answer = read_settings("1", **environ)
    assert answer.returncode == 1
    assert missing in answer.stderr.splitlines()[-1]


def test_plain_http_is_refused_when_others_can_reach_the_port() -> None:
    answer = read_settings("1", CHATSTORE_WEB_HOST="192.0.2.1")
    assert answer.returncode == 1
    assert "BASE_URL must begin with https://" in answer.stderr


def test_external_servers_are_used_as_configured() -> None:
    answer = read_settings(
        "s.DATABASES['default']['HOST'], s.DATABASES['default']['OPTIONS']['sslmode'],"
        " s.CASSANDRA['contact_points'], s.CASSANDRA['port'], s.CASSANDRA['replication'],"
        " s.CASSANDRA['commitlog_sync_period_ms'], s.LOCAL_CASSANDRA, s.SESSION_COOKIE_SECURE, s.DEBUG",
        **EXTERNAL,
    )
    assert answer.stdout.strip() == (
        "db.example require ['10.0.0.1', '10.0.0.2'] 9042 {'dc1': 3} 10000 False True False"
    )


def test_a_secret_is_read_from_a_file_but_not_from_two_sources(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("kept in a file\n")
    environ = {name: value for name, value in EXTERNAL.items() if name != "SECRET_KEY"}
    assert read_settings("s.SECRET_KEY", **environ, SECRET_KEY_FILE=str(file)).stdout == "kept in a file\n"
    both = read_settings("1", **EXTERNAL, SECRET_KEY_FILE=str(file))
    assert "Set SECRET_KEY or SECRET_KEY_FILE, not both." in both.stderr


def test_single_sign_on_and_retention_are_off_unless_all_they_need_is_set(tmp_path: Path) -> None:
    code = (
        "[(a, b.role.value, b.guild_id) for a, b in s.OIDC_ROLES], s.AUTHENTICATION_BACKENDS[1], s.AUDIT_RETENTION_DAYS"
    )
    assert read_settings(code).stdout == "[] moderation.sign_in.PasswordBackend 0\n"
    named = {
        "OIDC_ISSUER": "https://id.example/realm",
        "OIDC_CLIENT_ID": "chatstore",
        "OIDC_CLIENT_SECRET": "a secret",
        "OIDC_ROLES": "cn=mods=moderator, leads=lead@7",
        "AUDIT_RETENTION_DAYS": "365",
        "AUDIT_ARCHIVE_DIR": str(tmp_path),
        "AUDIT_ARCHIVE_KEY": "k" * 32,
    }
    roles = "[('cn=mods', 'moderator', None), ('leads', 'lead', 7)]"
    assert read_settings(code, **named).stdout == f"{roles} moderation.single_sign_on.Backend 365\n"
    for name, value in (
        ("AUDIT_ARCHIVE_KEY", "k" * 31),
        ("AUDIT_ARCHIVE_KEY_FALLBACKS", f"{'k' * 32}\nshort"),
        ("AUDIT_RETENTION_DAYS", "30"),
        ("OIDC_ROLES", ""),
    ):
        assert read_settings("1", **{**named, name: value}).returncode == 1


def test_an_address_is_limited_over_all_accounts_unless_it_may_be_that_of_an_unnamed_proxy() -> None:
    limit = "s.SIGN_IN_ATTEMPTS_PER_ADDRESS"
    assert read_settings(limit).stdout == "50\n"
    assert read_settings(limit, **EXTERNAL).stdout == "0\n"
    assert read_settings(limit, **EXTERNAL, TRUSTED_PROXIES="1").stdout == "50\n"
    assert read_settings(limit, **EXTERNAL, SIGN_IN_ATTEMPTS_PER_ADDRESS="20").stdout == "20\n"


def test_no_port_is_in_the_ephemeral_range() -> None:
    ports = [port for name in ("run", "test", "bench") for port in asdict(read_stack({}, name=name).ports).values()]
    assert len(set(ports)) == len(ports)
    # The default start of net.ipv4.ip_local_port_range.
    assert max(ports) < 32_768


def test_no_two_stacks_share_names_and_only_those_of_the_suite_share_servers() -> None:
    code = (
        "s.STACK.ports.web, s.CASSANDRA['port'], s.STACK.folder.name,"
        " s.DATABASES['default']['NAME'], s.CASSANDRA['keyspace'], s.SESSION_COOKIE_NAME, s.REDIS_URL[-2:]"
    )
    run, test, test2, test3, bench = (read_settings(code, CHATSTORE_STACK=name).stdout.split() for name in STACK_NAMES)
    assert run == ["28000", "29042", "run", "chatstore", "chatstore", "chatstore_session", "/0"]
    assert test == ["18000", "19042", "test", "chatstore_test", "chatstore_test", "chatstore_test_session", "/0"]
    assert test3[:3] == test2[:3] == test[:3]
    assert test2[3:] == ["chatstore2_test", "chatstore2_test", "chatstore2_test_session", "/1"]
    assert test3[3:] == ["chatstore3_test", "chatstore3_test", "chatstore3_test_session", "/2"]
    named_like_it = ["chatstorebench_test", "chatstorebench_test", "chatstorebench_test_session"]
    assert bench == ["13000", "14042", "bench", *named_like_it, "/0"]


def test_a_port_of_one_stack_is_moved_alone() -> None:
    environ = {"CHATSTORE_WEB_PORT": "28500", "CHATSTORE_TEST_WEB_PORT": "38500"}
    assert read_settings("s.BASE_URL", **environ).stdout == "http://127.0.0.1:28500\n"
    assert read_settings("s.BASE_URL", CHATSTORE_STACK="test", **environ).stdout == "http://127.0.0.1:38500\n"
