"""Which statements the store sends, in the order in which it does; each goes out all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from chatstore.store import cassandra


@contextmanager
def watch_statements() -> Iterator[list[str]]:
    """The CQL of each, as it was prepared."""
    session = cassandra._process.connect().session
    sent: list[str] = []
    send = session.execute_async

    def note_and_send(statement: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(statement.prepared_statement.query_string)
        return send(statement, *args, **kwargs)

    with patch.object(session, "execute_async", note_and_send):
        yield sent
