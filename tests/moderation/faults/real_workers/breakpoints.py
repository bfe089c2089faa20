"""Breakpoints at state changes of a step: a trigger waits for an advisory lock that the test holds.

The product has no code for this. The state change is on its way to Postgres, everything before it is done, and nothing
of it is stored: the worst point for a kill. After a change is stored, before anything that follows, only the paused
worker waits: it checks its breakpoints itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from moderation.domain.states import StepState, UndoStepState
from moderation.models import Purge
from tests.table_owner import as_table_owner
from tests.waiting import LIMIT_SECONDS

_INSTALL = """
CREATE TABLE IF NOT EXISTS step_breakpoint (purge_id bigint, state text, stored bool, PRIMARY KEY (purge_id, state));
CREATE OR REPLACE FUNCTION stop_at_breakpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(purge_id) FROM step_breakpoint a
        WHERE a.purge_id = NEW.purge_id AND a.state = NEW.state AND NOT stored;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER stop_at_breakpoint BEFORE UPDATE ON moderation_step
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION stop_at_breakpoint();
CREATE OR REPLACE TRIGGER stop_at_breakpoint BEFORE UPDATE ON moderation_undostep
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION stop_at_breakpoint();
"""
_REMOVE = """
DROP TRIGGER IF EXISTS stop_at_breakpoint ON moderation_step;
DROP TRIGGER IF EXISTS stop_at_breakpoint ON moderation_undostep;
DROP FUNCTION IF EXISTS stop_at_breakpoint;
DROP TABLE IF EXISTS step_breakpoint;
"""
_WAIT_AFTER_COMMIT = """
SELECT pg_advisory_xact_lock(purge_id) FROM step_breakpoint WHERE purge_id = %s AND state = %s AND stored
"""
_BLOCKED = """
SELECT waiting.pid, waiting.client_port FROM pg_locks JOIN pg_stat_activity waiting USING (pid)
WHERE locktype = 'advisory' AND NOT granted AND (classid::bigint << 32 | objid::bigint) = %s
"""
_ALIVE = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"


@dataclass(frozen=True, slots=True)
class Backend:
    """Postgres's process for one connection, and the port of the client at its other end."""

    pid: int
    client_port: int


@contextmanager
def breakpoints_installed() -> Iterator[None]:
    """Install the trigger for the duration of the context; the workers must have ended before it ends."""
    with as_table_owner():
        _run(_INSTALL)
    try:
        yield
    finally:
        _run("SELECT pg_advisory_unlock_all()")
        with as_table_owner():
            _run(_REMOVE)


def set_breakpoint(purge_id: int, state: StepState | UndoStepState, *, stored: bool = False) -> None:
    """Block every later change of the purge's steps, or of its undo's, to `state`.

    stored: block after the commit; only in the paused worker.
    """
    _run("SELECT pg_advisory_lock(%s)", purge_id)
    _run("INSERT INTO step_breakpoint VALUES (%s, %s, %s)", purge_id, state, stored)


def wait_at_breakpoint(purge_id: int, state: StepState | UndoStepState) -> None:
    """Block while a breakpoint after the commit is set for `state`."""
    _run(_WAIT_AFTER_COMMIT, purge_id, state)


def clear_breakpoint(purge: Purge) -> None:
    """Remove the purge's breakpoints and unblock waiting changes."""
    _run("DELETE FROM step_breakpoint WHERE purge_id = %s", purge.id)
    _run("SELECT pg_advisory_unlock(%s)", purge.id)


def find_blocked(purge: Purge) -> Backend | None:
    """Return the connection that is blocked at the breakpoint, if any."""
    with connection.cursor() as cursor:
        cursor.execute(_BLOCKED, (purge.id,))
        row = cursor.fetchone()
    return Backend(*row) if row else None


def wait_for_blocked(purge: Purge) -> Backend:
    """Wait for a connection that is blocked at the breakpoint and return it."""
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        backend = find_blocked(purge)
        if backend is not None:
            return backend
        time.sleep(0.02)
    raise AssertionError(f"no worker reached the breakpoint within {LIMIT_SECONDS} s")


def terminate_backend(backend: Backend) -> None:
    """Terminate the connection from Postgres's side, so that its transaction is rolled back."""
    _run("SELECT pg_terminate_backend(%s)", backend.pid)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_ALIVE, (backend.pid,))
            row = cursor.fetchone()
        if row == (0,):
            return
        time.sleep(0.01)


def _run(sql: str, *params: int | str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
