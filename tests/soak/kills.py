"""Kills of workers that are executing steps of a purge or of an undo.

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

from moderation.domain.states import STEP_STATES, UNDO_STEP_STATES
from moderation.operations.purging.worker import PIPELINE
from moderation.operations.steps.open_steps import STEP_MODELS
from tests.moderation.faults.real_workers.workers import Workers
from tests.table_owner import as_table_owner

_INSTALL = """
CREATE TABLE IF NOT EXISTS recorded_claim (token uuid PRIMARY KEY, worker text);
CREATE OR REPLACE FUNCTION record_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO recorded_claim VALUES (NEW.token, current_setting('application_name')) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('claimed', concat_ws(' ', current_setting('application_name'), NEW.token));
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER record_claim BEFORE UPDATE ON moderation_step
    FOR EACH ROW WHEN (NEW.token IS DISTINCT FROM OLD.token AND NEW.token IS NOT NULL) EXECUTE FUNCTION record_claim();
CREATE OR REPLACE TRIGGER record_claim BEFORE UPDATE ON moderation_undostep
    FOR EACH ROW WHEN (NEW.token IS DISTINCT FROM OLD.token AND NEW.token IS NOT NULL) EXECUTE FUNCTION record_claim();
"""
_REMOVE = """
DROP TRIGGER IF EXISTS record_claim ON moderation_step;
DROP TRIGGER IF EXISTS record_claim ON moderation_undostep;
DROP FUNCTION IF EXISTS record_claim;
DROP TABLE IF EXISTS recorded_claim;
"""
_BUSY = """
SELECT worker, token, count(*) FROM (
    SELECT token, lease_until FROM moderation_step WHERE state <> ALL(%s)
    UNION ALL SELECT token, lease_until FROM moderation_undostep WHERE state <> ALL(%s)
) AS step JOIN recorded_claim USING (token) WHERE lease_until >= clock_timestamp()
GROUP BY worker, token ORDER BY worker
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
    """The kills so far. purge_id: of the large purge, which the others run beside.

    left_in: number of steps left behind, by state. beside: kills that left none of the large purge. in_groups: those of
    them that left more steps than a worker has in hand without groups.
    """

    workers: Workers
    purge_id: int
    random: Random
    planned: int
    count: int = 0
    left_in: Counter[str] = field(default_factory=Counter)
    beside: int = 0
    in_groups: int = 0

    def list_busy(self) -> list[tuple[str, uuid.UUID, int]]:
        """Return living workers that are executing steps of any purge or undo: names, tokens and numbers of steps."""
        with connection.cursor() as cursor:
            cursor.execute(_BUSY, (list(STEP_STATES.final), list(UNDO_STEP_STATES.final)))
            return [busy for busy in cursor.fetchall() if self.workers.worker_named(busy[0]) is not None]

    def kill_one(self) -> bool:
        """Kill a random busy worker; return whether it was still executing a step.

        The more steps it has in hand the more likely: groups are rare, and pass quickly.
        """
        busy = self.list_busy()
        if not busy:
            return False
        ((name, token, _),) = self.random.choices(busy, weights=[steps for _, _, steps in busy])
        return self._kill(name, token)

    def kill_at_claim(self, *, seconds: float) -> bool:
        """Wait until a worker claims a step of any purge and kill it at once; return whether it was hit.

        During an outage a step is claimed only for some milliseconds.
        """
        with listen("claimed") as listener:
            for note in listener.notifies(timeout=seconds):
                name, token = note.payload.split()
                if self.workers.worker_named(name) is not None:
                    return self._kill(name, uuid.UUID(token))
        return False

    def _kill(self, name: str, token: uuid.UUID) -> bool:
        worker = self.workers.worker_named(name)
        assert worker is not None
        self.workers.kill(worker)
        left = [
            row for model in STEP_MODELS for row in model.objects.filter(token=token).values_list("purge_id", "state")
        ]
        self.left_in.update(state for _, state in left)
        self.count += bool(left)
        if left and self.purge_id not in dict(left):
            self.beside += 1
            self.in_groups += len(left) > PIPELINE
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
