"""Kills of workers that are executing a step.

A trigger records who claims a step: Postgres knows each worker by its name. A kill counts only if it left a step
behind.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import psycopg
from django.db import connection
from psycopg import sql

from moderation.domain.states import STEP_STATES
from moderation.models import Step
from tests.moderation.faults.real_workers.workers import Workers
from tests.table_owner import as_table_owner

_INSTALL = """
CREATE TABLE IF NOT EXISTS recorded_claim (token uuid PRIMARY KEY, worker text);
CREATE OR REPLACE FUNCTION record_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO recorded_claim VALUES (NEW.token, current_setting('application_name')) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('claimed', concat_ws(' ', NEW.purge_id, current_setting('application_name'), NEW.token));
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER record_claim BEFORE UPDATE ON moderation_step
    FOR EACH ROW WHEN (NEW.token IS DISTINCT FROM OLD.token AND NEW.token IS NOT NULL) EXECUTE FUNCTION record_claim();
"""
_REMOVE = """
DROP TRIGGER IF EXISTS record_claim ON moderation_step;
DROP FUNCTION IF EXISTS record_claim;
DROP TABLE IF EXISTS recorded_claim;
"""
_BUSY = """
SELECT DISTINCT worker, token FROM moderation_step JOIN recorded_claim USING (token)
WHERE purge_id = %s AND lease_until >= clock_timestamp() AND state <> ALL(%s) ORDER BY worker
"""


@contextmanager
def claims_recorded() -> Iterator[None]:
    """Install the trigger for the duration of the context."""
    with as_table_owner(), connection.cursor() as cursor:
        cursor.execute(_INSTALL)
    try:
        yield
    finally:
        with as_table_owner(), connection.cursor() as cursor:
            cursor.execute(_REMOVE)


@dataclass(slots=True)
class WorkerKiller:
    """The kills so far. left_in: number of steps left behind, by state."""

    workers: Workers
    purge_id: int
    random: Random
    count: int = 0
    left_in: Counter[str] = field(default_factory=Counter)

    def list_busy(self) -> list[tuple[str, uuid.UUID]]:
        """Return living workers that are executing a step of the purge, by name, with their tokens."""
        with connection.cursor() as cursor:
            cursor.execute(_BUSY, (self.purge_id, list(STEP_STATES.final)))
            return [(name, token) for name, token in cursor.fetchall() if self.workers.worker_named(name) is not None]

    def kill_one(self) -> bool:
        """Kill a random busy worker; return whether it was still executing a step."""
        busy = self.list_busy()
        return bool(busy) and self._kill(*self.random.choice(busy))

    def kill_at_claim(self, *, seconds: float) -> bool:
        """Wait until a worker claims a step and kill it at once; return whether it was hit.

        During an outage a step is claimed only for some milliseconds.
        """
        with listen("claimed") as listener:
            for note in listener.notifies(timeout=seconds):
                purge_id, name, token = note.payload.split()
                if int(purge_id) == self.purge_id and self.workers.worker_named(name) is not None:
                    return self._kill(name, uuid.UUID(token))
        return False

    def _kill(self, name: str, token: uuid.UUID) -> bool:
        worker = self.workers.worker_named(name)
        assert worker is not None
        self.workers.kill(worker)
        left = list(Step.objects.filter(purge_id=self.purge_id, token=token).values_list("state", flat=True))
        self.left_in.update(left)
        self.count += bool(left)
        return bool(left)


@contextmanager
def listen(channel: str) -> Iterator[psycopg.Connection]:
    """Open a separate connection that receives notifications from now on."""
    database = connection.settings_dict
    with psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        user=database["USER"],
        password=database["PASSWORD"],
        dbname=database["NAME"],
        autocommit=True,
    ) as listener:
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        yield listener
