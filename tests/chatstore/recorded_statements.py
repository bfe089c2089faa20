"""Recording of the statements that the store sends, in order. They are still executed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from chatstore.store import cassandra


@contextmanager
def record_statements() -> Iterator[list[str]]:
    """Yield a list that receives the CQL of each statement, without its values."""
    session = cassandra._process.connect().session
    sent: list[str] = []
    send = session.execute_async

    def record_and_send(statement: Any, *args: Any, **kwargs: Any) -> Any:
        # System tables are read unprepared.
        sent.append(getattr(statement, "prepared_statement", statement).query_string)
        return send(statement, *args, **kwargs)

    with patch.object(session, "execute_async", record_and_send):
        yield sent
