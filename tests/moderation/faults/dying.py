"""A process that does what an erasure's worker does, and kills itself where it is told to.

`python -c COMMAND PURGE_ID [PLACE]`. A place is what it is about to write or to move, told by the statement
itself, so that a new one has a name at once; the first, the second … time. Each is written to the
output before it is done. Without PLACE it lives.
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


class Places:
    """The places that it has come by; at `deadly` it dies."""

    def __init__(self, deadly: str) -> None:
        self._deadly = deadly
        self._seen: Counter[str] = Counter()

    def come_by(self, name: str) -> None:
        """Says where it is; does not return from where it is to die."""
        self._seen[name] += 1
        place = f"{name}, {self._seen[name]}"
        print(place, flush=True)
        if place == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_postgres(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        """For Django's `execute_wrapper`."""
        written = WRITES.match(sql)
        if written is not None:
            verb, table, column = written.groups()
            self.come_by(f"{table}.{column}" if column else f"{verb.split()[0].lower()} {table}")
        return execute(sql, params, many, context)

    def watch_cassandra(self, statements: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """The statements, as they are sent."""
        for cql, params in statements:
            verb, table = re.match(r"(\w+) .*?(?:FROM|INTO) (\w+)", cql, re.DOTALL).groups()  # type: ignore[union-attr]
            self.come_by(f"{verb.lower()} {table}")
            yield cql, params


def main(purge_id: str, deadly: str = "") -> None:
    places = Places(deadly)
    send, commit = cassandra.execute_window, connection.commit

    def watched_send(statements: Iterable[tuple[str, Any]], **named: Any) -> Any:
        return send(places.watch_cassandra(statements), **named)

    def watched_commit() -> None:
        places.come_by("commit")
        commit()

    connection.ensure_connection()
    cassandra.execute_window = watched_send  # type: ignore[assignment]
    connection.commit = watched_commit  # type: ignore[method-assign]
    with connection.execute_wrapper(places.watch_postgres):
        done = erase_purge(int(purge_id))
    places.come_by("done" if done else "not done")
