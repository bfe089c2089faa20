"""Monitor: once a minute, one of all workers runs the checks and sends notifications.

It runs in a thread of every worker's main process, beside its tasks. It therefore does not depend on beat, which
it monitors too, and is not delayed by purges or by repairs that take hours.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from chatstore.domain.errors import ChatstoreError, StoreUnavailable
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.notifications import send_notifications
from chatstore.store.heartbeats import MONITOR, record_heartbeat, seconds_since_heartbeat

logger = logging.getLogger(__name__)

Check = Callable[[dt.datetime], None]

MONITOR_LOCK = 4_005_911
"""Key of the Postgres advisory lock for running the checks; any number that is not used elsewhere."""

INTERVAL_TOLERANCE_SECONDS = 5.0
"""Threads do not wake up exactly on time; a run that is this much too early counts as due."""


_checks: list[Check] = []


def register_checks(*checks: Check) -> None:
    """Add checks of the monitor; each app does so in its `maintenance_jobs` when Django starts."""
    _checks.extend(checks)


def run_checks() -> bool:
    """Run each registered check once, then send notifications; return False if another worker's run suffices.

    A failing check is logged, and the others still run; findings that it could not verify stay open.
    """
    with _exclusive() as has_lock:
        if not has_lock or not _is_due():
            return False
        for check in (*_checks, send_notifications):
            try:
                check(postgres_now())
            except (OperationalError, InterfaceError):
                # Postgres is unavailable: there is nothing to check and nowhere to record it.
                raise
            except ChatstoreError as error:
                logger.warning("%s could not run: %s", check.__name__, error)
            except Exception:
                logger.exception("%s failed", check.__name__)
        _record_heartbeat()
    return True


def run_monitor(stop: threading.Event) -> None:
    """Run the checks periodically until stopped, whatever fails."""
    while not stop.wait(settings.MONITOR_INTERVAL_SECONDS):
        try:
            run_checks()
        except Exception as error:  # noqa: BLE001 - the monitor must survive the outage that it reports
            logger.warning("monitor run failed: %s", error)
        finally:
            # Also after a failure, so that the next run reconnects.
            connection.close()


def _is_due() -> bool:
    try:
        since = seconds_since_heartbeat(MONITOR)
    except StoreUnavailable:
        return True
    return since is None or since >= settings.MONITOR_INTERVAL_SECONDS - INTERVAL_TOLERANCE_SECONDS


def _record_heartbeat() -> None:
    try:
        record_heartbeat(MONITOR)
    except StoreUnavailable as error:
        logger.warning("could not record the monitoring heartbeat: %s", error)


@contextmanager
def _exclusive() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MONITOR_LOCK])
        row = cursor.fetchone()
    try:
        yield bool(row and row[0])
    finally:
        if row and row[0]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [MONITOR_LOCK])
