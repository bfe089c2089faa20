"""Secrets that tests use, and the check that no log of a process that they start contains one."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

_MESSAGE = re.compile(r"\bhello \d{15,}")
"""Text of the messages that tests write."""

_planted: dict[str, str] = {}
"""Names of secrets by their value."""


def plant(name: str, secret: str) -> str:
    """Remember a secret that no log may contain, and return it. name: for the failure."""
    _planted[secret] = name
    return secret


def assert_no_secrets(*logs: Path) -> None:
    """Fail if a log contains a planted secret, a secret of the servers, or text of a message."""
    known = {**_planted, **{secret: name for name, secret in secrets_of_the_stack().items()}}
    found = []
    for log in logs:
        text = log.read_text(errors="replace")
        found += [f"{name} in {log.name}" for secret, name in known.items() if secret in text]
        found += [f"text of a message in {log.name}: {one[0]}" for one in _MESSAGE.finditer(text)]
    assert found == []


def secrets_of_the_stack() -> dict[str, str]:
    """Return the secrets of the servers and of the settings, by a name; those that are set."""
    database = settings.DATABASES["default"]
    known = {
        "SECRET_KEY": settings.SECRET_KEY,
        "password of Postgres": str(database["PASSWORD"]),
        "password of Cassandra": str(settings.CASSANDRA["password"]),
        "URL of Valkey": settings.REDIS_URL,
    }
    return {name: secret for name, secret in known.items() if secret}
