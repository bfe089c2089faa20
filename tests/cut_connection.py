"""The connection to Postgres cut before a statement, as a kill of the process does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import InterfaceError, OperationalError, connection


def run_until(statements: int, work: Callable[[], object]) -> bool:
    """Work until that many statements were sent, and cut the connection before the next; return whether it came."""
    left = statements

    def cut(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        nonlocal left
        if left == 0:
            connection.connection.close()
        left -= 1
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(cut):
            work()
    except (OperationalError, InterfaceError):
        connection.close()
        return True
    return False
