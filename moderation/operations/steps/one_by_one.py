"""Acts of the poll on many rows: each in a transaction of its own, so that it is short, and alone if it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from django.db import InterfaceError, OperationalError

from moderation.operations.steps.claiming import brief_transaction

logger = logging.getLogger(__name__)


def act_one_by_one(ids: Iterable[int], act: Callable[[int], bool], *, name: str) -> int:
    """Call an act with each id, in a transaction; return how often it returned True.

    name: of the act, for the log. One that fails is logged, and the others follow. Raises only what Postgres does when
    it is unavailable: then the others would fail too.
    """
    done = 0
    for row_id in ids:
        try:
            with brief_transaction():
                done += act(row_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("could not %s %s", name, row_id)
    return done
