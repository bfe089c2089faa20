"""A scan that real workers share is frozen once, whichever of them are killed, and wherever in it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

import pytest
from django.db import connection

from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge, ScanPart
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.preview.scan_parts import PART_BUCKETS
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import make_channel, old_ids, preview, write
from tests.moderation.faults.real_workers.breakpoints import find_blocked, terminate_backend
from tests.moderation.faults.real_workers.workers import Workers
from tests.table_owner import as_table_owner
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CHANNELS, BUCKETS = 14, 40

KILLS = 12
MAX_SECONDS = 240

# Each change of a part waits for the test, and so does the change that freezes the manifest.
_INSTALL = """
CREATE OR REPLACE FUNCTION stop_scan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        coalesce(to_jsonb(NEW) ->> 'purge_id', to_jsonb(OLD) ->> 'purge_id', to_jsonb(NEW) ->> 'id')::bigint);
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER stop_scan BEFORE INSERT OR UPDATE OR DELETE ON moderation_scanpart
    FOR EACH ROW EXECUTE FUNCTION stop_scan();
CREATE OR REPLACE TRIGGER stop_scan BEFORE UPDATE ON moderation_purge
    FOR EACH ROW WHEN (OLD.state = 'scanning' AND NEW.state <> 'scanning') EXECUTE FUNCTION stop_scan();
"""
_REMOVE = """
DROP TRIGGER IF EXISTS stop_scan ON moderation_scanpart;
DROP TRIGGER IF EXISTS stop_scan ON moderation_purge;
DROP FUNCTION IF EXISTS stop_scan;
"""


@pytest.fixture
def _stoppable(workers: Workers) -> Iterator[None]:
    run(_INSTALL, is_owner=True)
    yield
    run("SELECT pg_advisory_unlock_all()")
    run(_REMOVE, is_owner=True)


def run(sql: str, *params: int, is_owner: bool = False) -> None:
    if is_owner:
        with as_table_owner():
            run(sql, *params)
        return
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)


def expire_leases(purge: Purge) -> None:
    Purge.objects.filter(pk=purge.pk, scan_token__isnull=False).update(scan_lease_until="2020-01-01T00:00:00Z")
    leased = ScanPart.objects.filter(purge=purge, lease_until__isnull=False)
    leased.update(lease_until="2020-01-01T00:00:00Z")


@pytest.mark.usefixtures("_stoppable")
def test_a_scan_is_frozen_once_whichever_workers_are_killed(mona: User, workers: Workers) -> None:
    author = secrets.randbits(60)
    for channel in [make_channel() for _ in range(CHANNELS)]:
        for ago in range(BUCKETS + 2, 2, -1):
            write(channel, old_ids(3, buckets_ago=ago), author=author)
    assert CHANNELS * BUCKETS > 2 * PART_BUCKETS
    selection = Selection(where=Author((author,)))
    alone = preview(mona, selection)
    purge = draft_purge(moderator=mona, selection=selection)

    def is_frozen() -> bool:
        purge.refresh_from_db()
        return purge.state != PurgeState.SCANNING

    kills, end = 0, time.monotonic() + MAX_SECONDS
    run("SELECT pg_advisory_lock(%s)", purge.pk)
    while kills < KILLS and not is_frozen():
        assert time.monotonic() < end, f"no worker came to the scan after {kills} kills"
        backend = find_blocked(purge)
        if backend is None:
            time.sleep(0.05)
            continue
        workers.kill(workers.worker_of(backend))
        terminate_backend(backend)
        kills += 1
        # Others that wait here go on, until the next change of a part.
        run("SELECT pg_advisory_unlock(%s)", purge.pk)
        expire_leases(purge)
        run("SELECT pg_advisory_lock(%s)", purge.pk)
    run("SELECT pg_advisory_unlock(%s)", purge.pk)
    wait_until(is_frozen)
    assert kills >= 3
    assert (purge.state, purge.manifest, purge.scanned) == (PurgeState.READY, alone.manifest, alone.scanned)
    assert purge.manifest == CHANNELS * BUCKETS * 3
    assert bytes(purge.manifest_hash or b"") == bytes(alone.manifest_hash or b"-")
    found, expected = summary_of(purge), summary_of(alone)
    assert (found.channels, found.periods, found.authors) == (expected.channels, expected.periods, expected.authors)
    assert sorted(purge.steps.values_list("ordinal", flat=True)) == list(range(1, CHANNELS * BUCKETS + 1))
    assert not ScanPart.objects.filter(purge=purge).exists()
