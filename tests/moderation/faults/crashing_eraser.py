"""A process that does the work of an erasure worker and kills itself at a given crash point.

`python -c COMMAND PURGE_ID [CRASH_POINT]`. Crash points precede each write and each state change. They are named after
the statement, so a new statement has a name at once, and numbered per name. Each one is printed before its statement is
executed. Without CRASH_POINT the process survives.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import connection

from chatstore.store import cassandra
from moderation.operations.erasure.execution import erase_purge

COMMAND = f"import sys, django; django.setup(); from {__name__} import main; main(*sys.argv[1:])"

WRITES = re.compile(r'(INSERT INTO|UPDATE|DELETE FROM) "?(?:chatstore|moderation)_(\w+)"?(?: SET "(\w+)")?')


class CrashPoints:
    """The crash points reached so far; the process dies at `crash_at`."""

    def __init__(self, crash_at: str) -> None:
        self._crash_at = crash_at
        self._seen: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        """Print the crash point; kill the process if it is the chosen one."""
        self._seen[name] += 1
        crash_point = f"{name}, {self._seen[name]}"
        print(crash_point, flush=True)
        if crash_point == self._crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def intercept_postgres(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        """Intercept statements of Postgres; for Django's `execute_wrapper`."""
        written = WRITES.match(sql)
        if written is not None:
            verb, table, column = written.groups()
            self.reach(f"{table}.{column}" if column else f"{verb.split()[0].lower()} {table}")
        return execute(sql, params, many, context)

    def intercept_cassandra(self, statements: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """Yield the statements as they are sent."""
        for cql, params in statements:
            verb, table = re.match(r"(\w+) .*?(?:FROM|INTO) (\w+)", cql, re.DOTALL).groups()  # type: ignore[union-attr]
            self.reach(f"{verb.lower()} {table}")
            yield cql, params


def main(purge_id: str, crash_at: str = "") -> None:
    crash_points = CrashPoints(crash_at)
    send, commit = cassandra.execute_window, connection.commit

    def intercepted_send(statements: Iterable[tuple[str, Any]], **named: Any) -> Any:
        return send(crash_points.intercept_cassandra(statements), **named)

    def intercepted_commit() -> None:
        crash_points.reach("commit")
        commit()

    connection.ensure_connection()
    cassandra.execute_window = intercepted_send  # type: ignore[assignment]
    connection.commit = intercepted_commit  # type: ignore[method-assign]
    with connection.execute_wrapper(crash_points.intercept_postgres):
        done = erase_purge(int(purge_id))
    crash_points.reach("done" if done else "not done")
