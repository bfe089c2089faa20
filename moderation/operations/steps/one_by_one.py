"""Acts of the poll on many rows: each in a transaction of its own, so that it is short, and alone if it fails.

A row on which an act fails is attempted again a minute later, and after twice as long each time, up to an hour: the
poll comes every ten seconds, and each attempt is logged with a traceback. A finding shows what still fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models import QuerySet

from chatstore.domain.errors import StoreUnavailable
from moderation.operations.steps.claiming import brief_transaction
from moderation.store.failed_acts import FailedAct, failed_acts, forget_failed_acts, record_failed_act

MAX_AT_ONCE = 500
"""Rows that one poll processes; the next one continues."""

FIRST_PAUSE_SECONDS = 60
MAX_PAUSE_SECONDS = 3_600

logger = logging.getLogger(__name__)


def act_one_by_one(due: QuerySet[Any], act: Callable[[int], bool], *, field: str = "pk", name: str) -> int:
    """Call an act with each due row, in a transaction; return how often it returned True.

    due: rows that need the act, in order. field: what the act is called with. name: of the act, for the log. One that
    fails is logged and postponed, and the others follow. Raises only what Postgres does when it is unavailable: then
    the others would fail too.
    """
    failed = _failed_before(name)
    postponed = [row_id for row_id, one in failed.items() if one.next_at > time.time()]
    done = 0
    for row_id in due.exclude(**{f"{field}__in": postponed}).values_list(field, flat=True)[:MAX_AT_ONCE]:
        try:
            with brief_transaction():
                done += act(row_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            seconds = _postpone(name, row_id, failed)
            logger.exception("could not %s %s, next attempt in %s s", name, row_id, seconds)
    _forget_ended(name, failed, due, field)
    return done


def _failed_before(name: str) -> Mapping[int, FailedAct]:
    try:
        return failed_acts(name)
    except StoreUnavailable:
        return {}


def _postpone(name: str, row_id: int, failed: Mapping[int, FailedAct]) -> int:
    """Record a failure; return the number of seconds until the next attempt."""
    before = failed[row_id].attempts if row_id in failed else 0
    seconds = min(FIRST_PAUSE_SECONDS << min(before, 10), MAX_PAUSE_SECONDS)
    with suppress(StoreUnavailable):
        record_failed_act(name, row_id, FailedAct(before + 1, time.time() + seconds))
    return seconds


def _forget_ended(name: str, failed: Collection[int], due: QuerySet[Any], field: str) -> None:
    """Forget rows that were processed now, or in another way."""
    if failed:
        left = set(due.filter(**{f"{field}__in": failed}).values_list(field, flat=True))
        with suppress(StoreUnavailable):
            forget_failed_acts(name, set(failed) - left)
