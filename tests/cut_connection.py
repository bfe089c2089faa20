"""The connection to Postgres cut before a statement, as a kill of the process does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import InterfaceError, OperationalError, connection

from tests.waiting import wait_until


def run_until(statements: int, work: Callable[[], object]) -> bool:
    """Work until that many statements were sent, and cut the connection before the next; return whether it came.

    Returns once Postgres has noticed it: until then its process keeps the locks of the session.
    """
    left, backend = statements, 0

    def cut(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        nonlocal left, backend
        if left == 0:
            backend = connection.connection.info.backend_pid
            connection.connection.close()
        left -= 1
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(cut):
            work()
    except (OperationalError, InterfaceError):
        connection.close()
        wait_until(lambda: not _is_running(backend))
        return True
    return False


def _is_running(backend: int) -> bool:
    """Return whether a process of Postgres with this id is running."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)", [backend])
        return bool(cursor.fetchone() == (True,))
