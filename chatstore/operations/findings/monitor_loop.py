"""The watch: each minute one of all workers looks for what needs a person, and tells of it.

It goes on in a thread of every worker's main process, beside its tasks: so it needs no beat, which it
watches too, and neither a purge nor a repair of hours keeps it waiting.
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
from chatstore.operations.findings.notifications import tell_findings
from chatstore.store.heartbeats import WATCH, note_life, seconds_since

logger = logging.getLogger(__name__)

Look = Callable[[dt.datetime], None]

LOCK = 4_005_911
"""Postgres's advisory lock of whoever makes a round; any number that nothing else uses."""

EARLY_SECONDS = 5.0
"""Threads do not wake up to the second: a round that comes so much too early counts as due."""


_checks: list[Look] = []


def register_checks(*checks: Look) -> None:
    """Add checks of the monitor; each app does so in its `maintenance_jobs` when Django starts."""
    _checks.extend(checks)


def make_round() -> bool:
    """Run every registered check once, then notify of findings; return False when another worker's round is enough.

    A look that fails says so in the log, and the others are made all the same: what it could
    not see stays open as it was.
    """
    with _alone() as am_alone:
        if not am_alone or not _is_due():
            return False
        for check in (*_checks, tell_findings):
            try:
                check(postgres_now())
            except (OperationalError, InterfaceError):
                # Postgres has gone: there is nothing to look at, and nowhere to write it down.
                raise
            except ChatstoreError as error:
                logger.warning("%s could not look: %s", check.__name__, error)
            except Exception:
                logger.exception("%s failed", check.__name__)
        _note()
    return True


def keep_watch(stop: threading.Event) -> None:
    """Rounds until told to stop; whatever goes wrong in one, the next one comes."""
    while not stop.wait(settings.WATCH_SECONDS):
        try:
            make_round()
        except Exception as error:  # noqa: BLE001 - a watch that ends with an outage would miss it
            logger.warning("the watch broke off: %s", error)
        finally:
            # Also one that broke: the next round connects anew.
            connection.close()


def _is_due() -> bool:
    try:
        since = seconds_since(WATCH)
    except StoreUnavailable:
        return True
    return since is None or since >= settings.WATCH_SECONDS - EARLY_SECONDS


def _note() -> None:
    try:
        note_life(WATCH)
    except StoreUnavailable as error:
        logger.warning("nobody will know that the watch looked: %s", error)


@contextmanager
def _alone() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        row = cursor.fetchone()
    try:
        yield bool(row and row[0])
    finally:
        if row and row[0]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
